create or replace function postbus_data.raise_unpublishable()
returns text
language plpgsql
volatile
as $$
/* Ends copy_range: it has come to a row that cannot be published. */
begin
    raise exception using errcode = 'PB002', message = 'a row cannot be published';
end
$$;
