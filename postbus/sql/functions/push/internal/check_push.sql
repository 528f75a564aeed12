create or replace function postbus_data.check_push(wanted postbus_data.push)
returns void
language plpgsql
as $$
/* Raise PB400 for settings that an endpoint cannot have. Whether its address may be used depends on the process that sends. */
declare
    problem text;
begin
    problem := case
        when wanted.url is null then 'url is missing'
        when length(wanted.url) > 2000 then 'url has more than 2000 characters'
        when wanted.url !~ '^https?://[^\s/?#@\\]+([/?#][^\s\\]*)?$'
            then 'url is not one of http or https, or has a user name, spaces or backslashes'
        when jsonb_typeof(wanted.headers) <> 'object' or wanted.headers @? 'strict $.* ? (@.type() != "string")'
            then 'headers are not strings by name'
        when exists (
            select
            from jsonb_each_text(wanted.headers) as h
            where h.key !~ '^[A-Za-z0-9!#$%&''*+.^_|~-]{1,100}$'
                or h.value !~ '^[ -~]*$'
                or length(h.value) > 4000
        ) then 'headers have a name or value that HTTP does not allow'
        when exists (
            select
            from jsonb_object_keys(wanted.headers) as h (name)
            where lower(h.name) in (
                'connection', 'content-encoding', 'content-length', 'content-type', 'expect', 'host', 'keep-alive', 'te', 'trailer',
                'transfer-encoding', 'upgrade'
            )
                or lower(h.name) like 'webhook-%'
                or lower(h.name) like 'postbus-%'
        ) then 'headers have a name that Postbus sets itself'
        when (wanted.mode in ('raw', 'standard', 'sequin', 'batch')) is not true
            then format('mode = %L is not one of raw, standard, sequin, batch', wanted.mode)
        when wanted.batch_size not between 1 and 1000 then format('batch_size = %s is not between 1 and 1000', wanted.batch_size)
        when wanted.timeout not between interval '1 second' and interval '120 seconds'
            then format('timeout = %s is not between 1 and 120 seconds', wanted.timeout)
        when wanted.concurrency not between 1 and 1000 then format('concurrency = %s is not between 1 and 1000', wanted.concurrency)
        when wanted.max_rate is not null and (wanted.max_rate between 0.001 and 1000000) is not true
            then format('max_rate = %s is not between 0.001 and 1000000', wanted.max_rate)
        when cardinality(wanted.retry_schedule) > 100 then 'retry_schedule has more than 100 delays'
        when exists (
            select from unnest(wanted.retry_schedule) as d where (d between interval '0' and interval '30 days') is not true
        ) then 'retry_schedule has a delay that is not between 0 and 30 days'
        when exists (select from unnest(wanted.permanent_statuses) as s where (s between 300 and 599) is not true)
            then 'permanent_statuses has a status that is not between 300 and 599'
    end;
    if problem is not null then
        raise exception using errcode = 'PB400', message = problem;
    end if;
end
$$;
