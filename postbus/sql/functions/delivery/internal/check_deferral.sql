create or replace function postbus_data.check_deferral(delay interval, until timestamptz, state json, state_bytes bytea)
returns void
language plpgsql
volatile
as $$
/* Raise PB400 or PB413 for a deferral that cannot be. */
declare
    size integer := coalesce(octet_length(state::text), octet_length(state_bytes));
begin
    if num_nonnulls(delay, until) > 1 then
        raise exception using errcode = 'PB400', message = 'both delay and until were given', hint = 'give one of them';
    elsif (delay between interval '0' and interval '365 days') is false then
        raise exception using errcode = 'PB400', message = format('delay = %s is not between 0 and 365 days', delay);
    elsif until >= timestamptz '10000-01-01 00:00+00' or not isfinite(until) then
        raise exception using errcode = 'PB400', message = format('until = %s is too far away', until);
    elsif num_nonnulls(state, state_bytes) > 1 then
        raise exception using errcode = 'PB400', message = 'both state and state_bytes were given', hint = 'give one of them';
    elsif size > 65536 then
        raise exception using
            errcode = 'PB413',
            message = format('state has %s bytes, more than 65536', size),
            hint = 'save it elsewhere, and where it is as the state';
    end if;
end
$$;
