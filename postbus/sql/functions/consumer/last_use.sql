create or replace function postbus_data.last_use(reader postbus_data.consumer)
returns postbus_data.position
language sql
volatile
as $$
/* When a consumer was used last, in microseconds: read_to_seq, and the sum of its positions then: horizon. Nulls if that is not known. */
    select p
    from postbus_data.position as p
    where p.consumer_id = reader.id
        and p.epoch = reader.epoch
        and p.partition = -5
    order by p.read_to_seq desc
    limit 1
$$;
