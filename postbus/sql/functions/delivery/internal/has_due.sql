create or replace function postbus_data.has_due(consumer_id integer, epoch integer, lane integer default 0)
returns boolean
language sql
volatile
as $$
/* Whether a consumer's redelivery log of a level has messages to deliver. Written so that the planner can inline it. */
    select exists (
        select
        from postbus_data.due as d
        where d.consumer_id = has_due.consumer_id
            and d.epoch = has_due.epoch
            and d.lane = has_due.lane
            and d.n > coalesce(
                (
                    select p.read_to_n
                    from postbus_data.redelivery_position as p
                    where p.consumer_id = has_due.consumer_id
                        and p.epoch = has_due.epoch
                        and p.lane = has_due.lane
                    order by p.read_to_n desc
                    limit 1
                ),
                0
            )
    )
$$;
