create or replace function postbus_data.forget(consumer_id integer)
returns void
language sql
as $$
/* Remove what a consumer has read, holds and waits for, because it is dropped or starts again. Dead letters stay, with their saved states. */
    delete from postbus_data.settled as s
    using postbus_data.lease as l
    where l.consumer_id = forget.consumer_id
        and s.token = l.token;
    delete from postbus_data.lease as l where l.consumer_id = forget.consumer_id;
    delete from postbus_data.waiting as w where w.consumer_id = forget.consumer_id;
    delete from postbus_data.saved as s
    where s.consumer_id = forget.consumer_id
        and not exists (select from postbus_data.dead_letter as d where d.consumer_id = forget.consumer_id and d.seq = s.seq);
    delete from postbus_data.parked as p where p.consumer_id = forget.consumer_id;
    delete from postbus_data.due as d where d.consumer_id = forget.consumer_id;
    delete from postbus_data.channel_position as p where p.consumer_id = forget.consumer_id;
    delete from postbus_data.turn as t where t.consumer_id = forget.consumer_id;
    delete from postbus_data.position as p where p.consumer_id = forget.consumer_id;
    delete from postbus_data.urgent_position as p where p.consumer_id = forget.consumer_id;
    delete from postbus_data.redelivery_position as p where p.consumer_id = forget.consumer_id;
    delete from postbus_data.sweep_state as p where p.consumer_id = forget.consumer_id;
    delete from postbus_data.consumer_use as p where p.consumer_id = forget.consumer_id;
$$;
