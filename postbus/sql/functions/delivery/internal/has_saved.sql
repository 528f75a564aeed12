create or replace function postbus_data.has_saved(consumer_id integer, seqs bigint[])
returns boolean
language sql
stable
as $$
/* Whether any of these messages of a consumer was deferred before. */
    select exists (
        select from postbus_data.saved as s where s.consumer_id = has_saved.consumer_id and s.seq = any (has_saved.seqs)
    )
$$;
