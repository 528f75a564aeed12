create or replace function postbus_data.note_webhook_refusal(source_id integer, status integer, reason text, refused_count integer)
returns void
language sql
volatile
as $$
/*
Note that a webhook source has refused requests; the last fifty notes stay.

Touches  webhook_refusal (insert, delete).
*/
    insert into postbus_data.webhook_refusal (source_id, status, reason, refused_count)
    select s.id, note_webhook_refusal.status, left(note_webhook_refusal.reason, 500), note_webhook_refusal.refused_count
    from postbus_data.webhook_source as s
    where s.id = note_webhook_refusal.source_id;
    delete from postbus_data.webhook_refusal as r
    where r.source_id = note_webhook_refusal.source_id
        and r.n < (
            select last.n
            from postbus_data.webhook_refusal as last
            where last.source_id = note_webhook_refusal.source_id
            order by last.n desc
            offset 49
            limit 1
        );
$$;
