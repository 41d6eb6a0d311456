package postgres

const listNodes = `SELECT n.name, n.owner, t - n.started, t - n.beat, n.until - t,
		ARRAY(SELECT l.destination FROM hf_lane AS l WHERE l.lane = ANY (n.lanes) ORDER BY 1), n.about
	FROM hf_node AS n, hf_now() AS t ORDER BY n.name`

// A server's facts use its real clock, since the store's clock may be another one in tests.
const (
	serverClock = `SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint`
	serverFacts = `SELECT current_setting('server_version'), coalesce(host(inet_server_addr()) || ':' || inet_server_port(), 'local'),
		current_database()::text, current_user::text, (SELECT coalesce(sum(numbackends), 0)::integer FROM pg_stat_database), current_setting('max_connections')::integer,
		current_setting('synchronous_commit'), current_setting('synchronous_standby_names'), current_setting('fsync')::boolean, current_setting('full_page_writes')::boolean,
		(SELECT count(*)::integer FROM pg_stat_activity WHERE wait_event = 'SyncRep'), NOT pg_has_role(current_user, 'pg_read_all_stats', 'USAGE')`
	// serverHolders: for sessions of other roles, only the number of transactions is visible. A
	// session of another database holds nothing here.
	serverHolders = `WITH holder AS (
			SELECT 'session' AS kind, format('%s, process %s: %s', coalesce(nullif(application_name, ''), 'no name'), pid, coalesce(state, 'not to be seen')) AS who,
				xact_start AS since, greatest(age(backend_xmin), age(backend_xid)) AS back
			FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid() AND (backend_xmin IS NOT NULL OR backend_xid IS NOT NULL)
				AND backend_type IS DISTINCT FROM 'autovacuum worker' -- whose snapshot holds nothing
			UNION ALL
			SELECT 'standby', application_name, NULL, age(backend_xmin) FROM pg_stat_replication WHERE backend_xmin IS NOT NULL
			UNION ALL
			SELECT 'prepared transaction', format('%s, of %s', gid, owner), prepared, age(transaction) FROM pg_prepared_xacts WHERE database = current_database()
			UNION ALL
			SELECT 'replication slot', slot_name, NULL, age(xmin) FROM pg_replication_slots WHERE xmin IS NOT NULL)
		SELECT kind, who, coalesce((extract(epoch FROM clock_timestamp() - since) * 1000000)::bigint, 0), back::bigint
		FROM holder ORDER BY since NULLS LAST, back DESC LIMIT 10`
	serverHidden = `SELECT count(*)::integer FROM pg_stat_activity
		WHERE datname = current_database() AND state IS NULL AND (backend_xmin IS NOT NULL OR backend_xid IS NOT NULL)`
	serverTables = `SELECT relname::text, n_live_tup, n_dead_tup, pg_total_relation_size(relid),
			(extract(epoch FROM clock_timestamp() - greatest(last_vacuum, last_autovacuum)) * 1000000)::bigint
		FROM pg_stat_user_tables WHERE relname = ANY ($1::text[]) AND relid = to_regclass(relname::text) ORDER BY relname`
)
