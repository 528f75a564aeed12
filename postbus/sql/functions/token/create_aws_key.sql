create or replace function postbus.create_aws_key(token_id integer, out access_key_id text, out secret_access_key text)
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
/*
Make a key pair for clients of AWS, with which they sign requests: what they may do is what the token allows. Both parts are random and made here, so that
no log of statements has the secret. Unlike a token's text, the secret is stored as it is, since a signature can only be verified by it.

Returns  the pair; nothing shows the secret again.
Raises   PB404 for an unknown or revoked token, PB409 when it has a pair already.
Touches  token (update).
*/
declare
    chosen postbus_data.token;
    alphabet constant text := 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567';
begin
    select t.* into chosen from postbus_data.token as t where t.id = token_id and t.revoked_at is null for update;
    if chosen.id is null then
        raise exception using errcode = 'PB404', message = format('token %s does not exist', coalesce(token_id::text, 'null')), hint = 'see: postbus token ls';
    end if;
    if chosen.access_key_id is not null then
        raise exception using
            errcode = 'PB409', message = format('token %s has a key pair already', token_id), hint = 'create another token: postbus token create NAME --aws';
    end if;
    select 'PBUS' || string_agg(substr(alphabet, 1 + get_byte(sha256(uuid_send(gen_random_uuid())), 0) % 32, 1), '' order by n)
    into access_key_id
    from generate_series(1, 16) as n;
    -- Two random ids of 122 bits each.
    secret_access_key := encode(sha256(uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid())), 'hex');
    update postbus_data.token as t
    set access_key_id = create_aws_key.access_key_id,
        aws_secret = create_aws_key.secret_access_key
    where t.id = token_id;
end
$$;
