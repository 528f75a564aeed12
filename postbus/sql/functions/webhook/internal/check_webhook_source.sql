create or replace function postbus_data.check_webhook_source(wanted postbus_data.webhook_source)
returns void
language plpgsql
as $$
/* Raise PB400 for settings that a webhook source cannot have. What its options mean is checked by the library. */
declare
    time_window interval;
    stream_name text;
    needed interval;
    problem text;
begin
    perform postbus_data.check_name('webhook source', wanted.name);
    problem := case
        when (wanted.kind in ('standard', 'stripe', 'github', 'shopify', 'slack', 'hmac', 'basic', 'header', 'none')) is not true
            then format('kind = %L is not one of standard, stripe, github, shopify, slack, hmac, basic, header, none', wanted.kind)
        when wanted.kind = 'none' and cardinality(wanted.secrets) > 0 then 'kind = none has no secrets'
        when wanted.kind <> 'none' and cardinality(wanted.secrets) not between 1 and 10
            then format('secrets are missing: kind = %s needs 1 to 10', wanted.kind)
        when exists (select from unnest(wanted.secrets) as s where (length(s) between 1 and 1000) is not true)
            then 'secrets have 1 to 1000 characters'
        when jsonb_typeof(wanted.options) <> 'object' or length(wanted.options::text) > 10000 then 'options are not an object of at most 10000 bytes'
        when length(wanted.key_template) not between 1 and 500 then 'key_template has 1 to 500 characters'
        when wanted.id_from !~ '^(sha256|header:[A-Za-z0-9_-]{1,100}|json:(/[^/]{1,100}){1,10})$'
            then 'id_from is not header:NAME, json:/POINTER or sha256'
        when cardinality(wanted.keep_headers) > 50 or exists (
            select from unnest(wanted.keep_headers) as h where (h ~ '^[a-z0-9_-]{1,100}$') is not true
        ) then 'keep_headers are at most 50 names of headers in lower case'
        when wanted.keep_headers && array['authorization', 'proxy-authorization', 'cookie']
            then 'keep_headers has one that holds credentials'
        when wanted.dedup is null then 'dedup is missing'
        when (wanted.max_body_bytes between 1 and 26214400) is not true
            then format('max_body_bytes = %s is not between 1 and 26214400', wanted.max_body_bytes)
        when wanted.max_rate is not null and (wanted.max_rate between 0.001 and 1000000) is not true
            then format('max_rate = %s is not between 0.001 and 1000000', wanted.max_rate)
    end;
    if problem is not null then
        raise exception using errcode = 'PB400', message = problem;
    end if;
    if wanted.dedup then
        -- For so long they repeat what was not answered.
        needed := case wanted.kind
            when 'stripe' then interval '3 days'
            when 'standard' then interval '3 days'
            when 'github' then interval '3 days'
            when 'shopify' then interval '4 hours'
            else interval '1 hour'
        end;
        select s.dedup_window, s.name into time_window, stream_name from postbus_data.stream as s where s.id = wanted.stream_id;
        if (time_window >= needed) is not true then
            raise exception using
                errcode = 'PB400',
                message = format(
                    'dedup = true needs a dedup_window of at least %s, and that of stream "%s" is %s', needed, stream_name, coalesce(time_window::text, 'none')
                ),
                hint = format(
                    'widen it: postbus stream edit %s --dedup-window %s; or let events that are repeated be published twice, without dedup',
                    stream_name, extract(epoch from needed)::integer || 's'
                );
        end if;
    end if;
end
$$;
