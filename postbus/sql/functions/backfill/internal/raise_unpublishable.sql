create or replace function postbus_data.raise_unpublishable()
returns text
language plpgsql
volatile
as $$
/* End copy_range: a row cannot be published. */
begin
    raise exception using errcode = 'PB002', message = 'a row cannot be published';
end
$$;
