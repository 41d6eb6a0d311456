package postgres_test

import "fmt"

// noAutovacuum keeps the statistics as a test wants them.
func noAutovacuum() (list []string) {
	for _, table := range []string{"hf_bundle", "hf_message", "hf_queue", "hf_final", "hf_entry", "hf_inbox", "hf_inbox_body", "hf_notification", "hf_notification_end", "hf_target"} {
		list = append(list, "ALTER TABLE "+table+" SET (autovacuum_enabled = false)")
	}
	return list
}

// lanes are those of rows, a among them.
func lanes() []string {
	return []string{
		`INSERT INTO hf_lane (destination) SELECT CASE n WHEN 1 THEN 'a' ELSE 'lane' || n END FROM generate_series(1, 20) AS n`,
		`INSERT INTO hf_route (lane, source, kind, endpoint) SELECT lane, 's', 'command', 'E' FROM hf_lane`,
		`INSERT INTO hf_source (name) VALUES ('a'), ('b')`,
	}
}

// rows are of all sorts: most of one lane, some with keys, every second one
// final, few in hand, few kept.
func rows(from, to int) []string {
	between := fmt.Sprintf("BETWEEN %d AND %d", from, to)
	series := fmt.Sprintf("generate_series(%d, %d) AS n", from, to)
	list := []string{
		`INSERT INTO hf_message SELECT n, int8send(n), 1 + l, 1 + l, n, 'x', NULL, NULL, NULL, 0, NULL, CASE WHEN n % 3 = 0 THEN 'k' || n % 1000 END, CASE WHEN n % 7 < 3 THEN n - n % 2 END
			FROM ` + series + `, LATERAL (SELECT CASE WHEN n % 10 = 9 THEN n % 20 ELSE 0 END::integer AS l) AS x`,
		`INSERT INTO hf_final SELECT seq, lane, CASE WHEN seq % 20 = 1 THEN 3 WHEN seq % 20 = 3 THEN 4 WHEN seq % 20 = 5 THEN 5 ELSE 2 END, seq + 5,
			CASE WHEN seq % 4 = 1 THEN seq ELSE 9223372036854775807 END, 0, 1, 1, NULL, false, NULL, okey FROM hf_message WHERE seq % 2 = 1 AND seq ` + between,
		`INSERT INTO hf_entry (message, kind, state, at, cycle, attempt) SELECT seq, kind, 0, seq, 1, 1 FROM hf_message, generate_series(1, 2) AS kind WHERE seq ` + between,
		`INSERT INTO hf_inbox SELECT n, 1 + n % 2, int8send(n), 'E', 'h', n % 10 = 0, n, CASE WHEN n % 10 <> 0 THEN n END, n + 1000000 FROM ` + series,
		`INSERT INTO hf_inbox_body SELECT seq, 'command', 'x' FROM hf_inbox WHERE kept AND seq ` + between,
		`INSERT INTO hf_bundle SELECT n, 'notification', 'plant' || n % 5, int8send(n), 'h', 'x', n, n FROM ` + series + ` WHERE n % 2 = 0`,
		`INSERT INTO hf_notification SELECT seq, seq - seq % 2, seq % 2, int8send(seq - seq % 2), id, 'c', 't', 'l', 's', 'plant' || seq % 5, '', '', '', '', NULL, created FROM hf_message WHERE seq ` + between,
		`INSERT INTO hf_notification_end SELECT seq, 'plant', state, settled, failures, tries, cycle FROM hf_final WHERE seq ` + between,
		`INSERT INTO hf_target SELECT seq, 'c', 'a' || n, '', 1, '', '', '', false, 1, 1, '', '', false, 1 FROM hf_notification, generate_series(1, 2) AS n WHERE seq ` + between,
	}
	return append(list, queueRows(from, to)...)
}

func queueRows(from, to int) []string {
	return []string{fmt.Sprintf(`INSERT INTO hf_queue (seq, lane, due, start, expires, owner, claim, deaths, blocked, okey)
		SELECT seq, lane, created, created, CASE WHEN seq %% 4 = 0 THEN seq ELSE 9223372036854775807 END, CASE WHEN seq %% 100 = 2 THEN 1 END, CASE WHEN seq %% 100 = 2 THEN 1 END,
			CASE WHEN seq %% 200 = 0 THEN 1 ELSE 0 END, CASE WHEN okey IS NULL THEN 0 WHEN seq %% 50 = 0 THEN 2 WHEN seq %% 1000 < 30 THEN 0 ELSE 1 END, okey
		FROM hf_message WHERE seq %% 2 = 0 AND seq BETWEEN %d AND %d`, from, to)}
}

// plainRows are of one lane and one source, without keys: half of them are to be
// tried, half are delivered.
func plainRows() []string {
	return []string{
		`INSERT INTO hf_message SELECT n, int8send(n), 1, 1, n, 'x', NULL, NULL, NULL, 0, NULL, NULL FROM generate_series(1000, 40999) AS n`,
		`INSERT INTO hf_queue (seq, lane, due, start, expires) SELECT seq, lane, seq, seq, 9223372036854775807 FROM hf_message WHERE seq > 20000`,
		`INSERT INTO hf_final SELECT seq, lane, 2, seq, 9223372036854775807, 0, 1, 1, NULL, false, NULL, NULL FROM hf_message WHERE seq <= 20000`,
		`INSERT INTO hf_inbox SELECT n, 1, int8send(n), 'E', 'h', false, n, n, n FROM generate_series(1000, 40999) AS n`,
	}
}
