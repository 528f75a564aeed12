create or replace function postbus_data.check_consumer(settings postbus_data.consumer)
returns void
language plpgsql
immutable
as $$
/* Refuse settings of a consumer that are out of their range (PB400). */
declare
    problem text;
begin
    problem := case
        -- <consumer settings: checks>
        when settings.ordering is null then 'ordering cannot be null'
        when settings.ordering not in ('key', 'none', 'partition')
            then format('ordering = %L is not one of key, none, partition', settings.ordering)
        when settings.ack_wait is null then 'ack_wait cannot be null'
        when settings.ack_wait not between interval '1 millisecond' and interval '7 days'
            then format('ack_wait = %s is not between 1 millisecond and 7 days', settings.ack_wait)
        when settings.max_ack_pending is null then 'max_ack_pending cannot be null'
        when settings.max_ack_pending not between 1 and 1000000
            then format('max_ack_pending = %s is not between 1 and 1000000', settings.max_ack_pending)
        when settings.max_deliver not between 1 and 1000000
            then format('max_deliver = %s is not between 1 and 1000000', settings.max_deliver)
        when settings.retain_dead not between interval '0' and interval '3650 days'
            then format('retain_dead = %s is not between 0 and 3650 days', settings.retain_dead)
        when settings.max_per_key not between 1 and 10000
            then format('max_per_key = %s is not between 1 and 10000', settings.max_per_key)
        when settings.max_waiting is null then 'max_waiting cannot be null'
        when settings.max_waiting not between 1 and 1000000
            then format('max_waiting = %s is not between 1 and 1000000', settings.max_waiting)
        when settings.on_dead is null then 'on_dead cannot be null'
        when settings.on_dead not in ('continue', 'hold')
            then format('on_dead = %L is not one of continue, hold', settings.on_dead)
        when settings.on_expired is null then 'on_expired cannot be null'
        when settings.on_expired not in ('skip', 'bury')
            then format('on_expired = %L is not one of skip, bury', settings.on_expired)
        when settings.keep_unread is null then 'keep_unread cannot be null'
        when settings.expire_after not between interval '1 minute' and interval '3650 days'
            then format('expire_after = %s is not between 1 minute and 3650 days', settings.expire_after)
        when settings.keep_history not between interval '1 second' and interval '3650 days'
            then format('keep_history = %s is not between 1 second and 3650 days', settings.keep_history)
        when settings.ageing not between interval '1 second' and interval '3650 days'
            then format('ageing = %s is not between 1 second and 3650 days', settings.ageing)
        when settings.fair is null then 'fair cannot be null'
        -- </consumer settings>
        when settings.backoff is null or cardinality(settings.backoff) > 100 or array_position(settings.backoff, null) is not null
            then 'backoff is not a list of at most 100 delays'
        when exists (select from unnest(settings.backoff) as b where b not between interval '0' and interval '30 days')
            then 'a delay of backoff is not between 0 and 30 days'
        when settings.backoff_factor is not null and cardinality(settings.backoff) <> 1
            then 'backoff_factor needs exactly one delay in backoff, the first'
        when settings.backoff_factor not between 1 and 100
            then format('backoff_factor = %s is not between 1 and 100', settings.backoff_factor)
        when settings.backoff_cap not between interval '0' and interval '30 days'
            then format('backoff_cap = %s is not between 0 and 30 days', settings.backoff_cap)
        when (settings.backoff_jitter between 0 and 1) is not true
            then format('backoff_jitter = %s is not between 0 and 1', settings.backoff_jitter)
        when settings.dead_letters_to = settings.stream_name
            then 'dead_letters_to is the stream of the consumer itself'
        when settings.dead_letters_to is not null and not exists (
            select
            from postbus_data.stream as own
            join postbus_data.stream as other on other.data_type = own.data_type and not other.one_message_per_key
            where own.id = settings.stream_id
                and other.name = settings.dead_letters_to
        )
            then format(
                'dead_letters_to = %L is not a stream with the same data_type that keeps every message', settings.dead_letters_to
            )
    end;
    if problem is not null then
        raise exception using errcode = 'PB400', message = problem;
    end if;
end
$$;
