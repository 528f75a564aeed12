-- To find a message by its seq.
create index due_seq on postbus_data.due ((consumer_id + 0), seq);
