create or replace function postbus_data.backoff_delay(reader postbus_data.consumer, failure integer)
returns interval
language plpgsql
volatile
as $$
/* How long a message waits after its nth failure, by the consumer's backoff. */
declare
    seconds double precision;
begin
    if cardinality(reader.backoff) = 0 then
        return interval '0';
    end if;
    if reader.backoff_factor is null then
        seconds := extract(epoch from reader.backoff[least(failure, cardinality(reader.backoff))]);
    else
        -- The exponent is limited: the cap, or 30 days, is reached long before.
        seconds := extract(epoch from reader.backoff[1]) * power(reader.backoff_factor, least(failure - 1, 60));
    end if;
    seconds := least(seconds, extract(epoch from coalesce(reader.backoff_cap, interval '30 days')));
    return make_interval(secs => seconds * (1 + reader.backoff_jitter * (2 * random() - 1)));
end
$$;
