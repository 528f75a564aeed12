-- They take exist_ok.
drop function if exists postbus.create_stream, postbus.create_consumer, postbus.create_group;
