create or replace function postbus_data.check_isolation()
returns void
language plpgsql
volatile
as $$
/* Refuse a transaction that keeps its snapshot (PB412): it does not see what others have committed since. */
begin
    if current_setting('transaction_isolation') not in ('read committed', 'read uncommitted') then
        raise exception using
            errcode = 'PB412',
            message = format('this is not possible in a %s transaction', upper(current_setting('transaction_isolation'))),
            hint = 'use READ COMMITTED: an older snapshot would miss messages';
    end if;
end
$$;
