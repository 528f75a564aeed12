-- How many rows a pipeline has put aside, and how many came too late; how many messages a writer has published in all.

alter table postbus_data.pipeline
    add column aside_count bigint not null default 0,
    add column late_count bigint not null default 0;
alter table postbus_data.spark_writer add column total_count bigint not null default 0;
update postbus_data.spark_writer set total_count = message_count;
alter type postbus.pipeline_info add attribute aside_count bigint, add attribute late_count bigint;

-- Their signatures change.
drop function if exists
    postbus_data.note_pipeline(text, uuid, bigint, bigint, bigint),
    postbus_data.spark_written(text, text, postbus.caller);
