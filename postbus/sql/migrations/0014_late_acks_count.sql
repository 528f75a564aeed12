-- Messages whose lease has expired carry its token until they are given out again, so that a late ack finds them.
alter table postbus_data.waiting add column token bigint;
create index waiting_token on postbus_data.waiting (token) where token is not null;
alter table postbus_data.due add column token bigint;
create index due_token on postbus_data.due (token) where token is not null;
alter table postbus_data.dead_letter add column token bigint, add column epoch integer;
create index dead_letter_token on postbus_data.dead_letter (token) where token is not null;

-- They take the token now.
drop function if exists postbus_data.schedule_retry, postbus_data.add_dead_letter;
