-- What every install and upgrade ends with.

-- The functions that are written for each stream and segment may have changed with their templates.
select postbus_data.create_publish_functions(s.id), postbus_data.create_receive_function(s.id), postbus_data.create_ack_function(s.id)
from postbus_data.stream as s;
select postbus_data.create_claim_function(g.stream_id, g.number, s.data_type)
from postbus_data.segment as g
join postbus_data.stream as s on s.id = g.stream_id;

-- Functions run with the rights of their owner, and only some of them may be called by everybody.
select postbus_data.own_objects(t.tableowner) from pg_catalog.pg_tables as t where t.schemaname = 'postbus_data' and t.tablename = 'stream';
select postbus_data.close_functions();
select postbus_data.apply_grants(s.id) from postbus_data.stream as s;

select postbus_data.comment_functions();
