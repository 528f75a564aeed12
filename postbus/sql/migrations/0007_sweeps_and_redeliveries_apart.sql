-- Rows of position with partition -1, -2 and -5 become tables of their own.
create table postbus_data.redelivery_position (
    consumer_id integer not null,
    epoch integer not null,
    read_to_n bigint not null,
        pending_bound integer not null,
    primary key (consumer_id, epoch, read_to_n)
);

create table postbus_data.sweep_state (
    consumer_id integer not null,
    epoch integer not null,
    swept_to timestamptz not null,
        full_sweep_at timestamptz not null,
    wide_sweep_at timestamptz not null,
        position_sum bigint not null,
    delivery_rate integer not null,
    primary key (consumer_id, epoch, swept_to)
);

create table postbus_data.consumer_use (
    consumer_id integer not null,
    epoch integer not null,
    used_at timestamptz not null,
        position_sum bigint not null,
    primary key (consumer_id, epoch, used_at)
);

insert into postbus_data.redelivery_position (consumer_id, epoch, read_to_n, pending_bound)
select p.consumer_id, p.epoch, p.read_to_seq, p.pending_bound
from postbus_data.position as p
where p.partition = -1;

insert into postbus_data.sweep_state (consumer_id, epoch, swept_to, full_sweep_at, wide_sweep_at, position_sum, delivery_rate)
select
    p.consumer_id, p.epoch, to_timestamp(p.read_to_seq / 1000000.0), to_timestamp(p.horizon / 1000000.0), to_timestamp(p.missed_count / 1000000.0),
    p.expired_count, p.pending_bound
from postbus_data.position as p
where p.partition = -2;

insert into postbus_data.consumer_use (consumer_id, epoch, used_at, position_sum)
select p.consumer_id, p.epoch, to_timestamp(p.read_to_seq / 1000000.0), p.horizon
from postbus_data.position as p
where p.partition = -5;

delete from postbus_data.position where partition < 0;
