-- Copies of a consumer's dead letters are published to another stream.

alter table postbus_data.consumer add column dead_letters_to text collate "C";
alter type postbus.consumer_info add attribute dead_letters_to text;
drop function if exists postbus.create_consumer, postbus.alter_consumer;
-- Their files have other names now.
drop function if exists postbus_data.receive_template, postbus_data.receive_from_many_template, postbus_data.claim_template;
