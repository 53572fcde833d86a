-- What judging of batches keeps from one batch to the next, and totals that outlive the days of run_parts.

ALTER TABLE adapter_states
    ADD COLUMN uncounted integer NOT NULL DEFAULT 0 CHECK (uncounted BETWEEN 0 AND 19),
    ADD COLUMN recent jsonb NOT NULL DEFAULT '[]';

COMMENT ON COLUMN adapter_states.uncounted IS 'Attempts that were judged since the counters of batches in a row last advanced; with 20 they advance.';
COMMENT ON COLUMN adapter_states.recent IS 'The newest attempts that were judged, at most 19: they help to judge a rest. Empty after the adapter was enabled again.';

CREATE TABLE scrape_totals (
    source_id  uuid NOT NULL REFERENCES sources,
    adapter_id text COLLATE "C" NOT NULL,
    figure     text COLLATE "C" NOT NULL,
    word       text COLLATE "C" NOT NULL,
    total      bigint NOT NULL,
    PRIMARY KEY (source_id, adapter_id, figure, word)
) WITH (fillfactor = 70);

COMMENT ON TABLE scrape_totals IS 'Counts that only grow, for metrics: pages by outcome, adapters switched off by reason, and so on.';
COMMENT ON COLUMN scrape_totals.figure IS 'What is counted: outcome, disabled, or a duration such as fetch_ms.';
COMMENT ON COLUMN scrape_totals.word IS 'The outcome, the reason, or the upper end of a range of durations.';
