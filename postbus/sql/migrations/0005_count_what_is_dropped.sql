-- How many messages segments held that were dropped, so that a consumer that comes too late need not guess.

create table postbus_data.dropped (
    stream_id integer not null references postbus_data.stream on delete cascade,
    number integer not null,
    partition_base integer not null,
    after_seq bigint not null,
    last_seq bigint not null,
    counts bigint[] not null,
    primary key (stream_id, number)
);
