create or replace function postbus_data.find_aws_key(access_key_id text)
returns table (digest text, secret_access_key text)
language sql
stable
as $$
/* The digest of the token that a key pair belongs to, and the secret, for the server that verifies a signature; no row when there is none. */
    select t.digest, t.aws_secret
    from postbus_data.token as t
    where t.access_key_id = find_aws_key.access_key_id
        and t.revoked_at is null
$$;
