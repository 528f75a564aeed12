create or replace function postbus_data.note_chosen(
    reader postbus_data.consumer,
    claim postbus_data.channel_claim,
    seqs bigint[],
    channels text[],
    segment integer
)
returns postbus_data.channel_claim
language plpgsql
volatile
as $$
/* Note messages that a claim has chosen: they count towards the limits of their channels at once. Touches channel_pace, see use_channels. */
begin
    claim.segment := case when claim.seqs is null or claim.segment = note_chosen.segment then note_chosen.segment end;
    claim.seqs := claim.seqs || note_chosen.seqs;
    claim.in_flight := claim.in_flight || channels;
    claim.is_changed := true;
    if claim.has_limits then
        perform postbus_data.use_channels(reader, channels, claim.now_at);
    end if;
    return claim;
end
$$;
