create or replace function postbus_data.change_sqs_queue(name text, attributes jsonb default '{}', tags jsonb default '{}', gone_tags text[] default '{}')
returns void
language plpgsql
volatile
as $$
/*
Set attributes and tags of a queue, as SetQueueAttributes, TagQueue and UntagQueue do. Those that are not named stay; '' removes an attribute.

Raises   PB404 for an unknown queue.
Touches  sqs_queue (update), and as apply_sqs_attributes does.
*/
declare
    changed integer := (postbus_data.find_sqs_queue(name)).id;
begin
    update postbus_data.sqs_queue as q
    set attributes = (
            select coalesce(jsonb_object_agg(a.key, a.value), '{}')
            from jsonb_each_text(q.attributes || change_sqs_queue.attributes) as a
            where a.value <> ''
        ),
        tags = (q.tags || change_sqs_queue.tags) - gone_tags,
        changed_at = case when change_sqs_queue.attributes = '{}' then q.changed_at else clock_timestamp() end
    where q.id = changed;
    if change_sqs_queue.attributes <> '{}' then
        perform postbus_data.apply_sqs_attributes(name);
    end if;
end
$$;
