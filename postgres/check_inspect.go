package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-mq/holdfast/storecopy"
)

// Inspection is what Inspect finds in a database.
type Inspection struct {
	Server         ServerInfo
	Schema, Newest int   // numbers of the last migration in the database (0: it has none of our tables) and in this release
	Refused        error // why a node would refuse to start with it, apart from settings of durability; nil: it would start
	Nodes          []NodeInfo
	Parked         map[string]int64  // by destination
	Waiting        []string          // destinations with pending messages
	Held           map[string]string // destinations whose lane is held, with the reason
	Admins         int               // number of tokens and people with the role admin for good
	Sites          int               // number of enrolled sites that are not revoked
	Gap            *Gap              // of a history that nobody has acknowledged; may be nil
}

const (
	inspectLanes = `SELECT l.destination, coalesce(l.fault, ''), (SELECT true FROM hf_queue AS q WHERE q.lane = l.lane AND q.lane > 0 LIMIT 1) IS NOT NULL,
			coalesce((SELECT sum(t.parked) FROM hf_tally AS t WHERE t.lane = l.lane), 0)::bigint
		FROM hf_lane AS l ORDER BY 1`
	inspectAdmins    = `SELECT count(*) FROM hf_token WHERE role = 'admin' AND until IS NULL`
	inspectSites     = `SELECT count(*) FROM hf_site WHERE enrolled IS NOT NULL AND revoked IS NULL`
	inspectPeople    = `SELECT count(*) FROM hf_person WHERE role = 'admin' AND password <> '' AND disabled IS NULL`
	sitesSince       = 3 // the migration that makes the table
	peopleSince      = 7 // the same of people
	readOnlyFromHere = `SET default_transaction_read_only = on; SET enable_seqscan = off; SET enable_bitmapscan = off`
)

// Inspect reads a database and changes nothing: it takes no lease, creates no table, and writes
// nothing. It returns an error if it cannot read the database.
func Inspect(ctx context.Context, dsn string) (Inspection, error) {
	in := Inspection{Newest: len(migrations()), Parked: map[string]int64{}, Held: map[string]string{}}
	err := alone(ctx, dsn, func(conn *pgx.Conn) error {
		if _, err := conn.Exec(ctx, readOnlyFromHere, pgx.QueryExecModeSimpleProtocol); err != nil {
			return err
		}
		// This comes first: through a pooler in transaction mode no other answer can be trusted.
		if in.Refused = alone(ctx, dsn, func(other *pgx.Conn) error { return vetPooler(ctx, conn, other) }); in.Refused != nil {
			in.Server.Pooled = true
			return nil //nolint:nilerr // this is a finding
		}
		if err := askServer(ctx, conn, &in.Server); err != nil {
			return err
		}
		in.Refused = vetServer(ctx, conn, true)
		t, err := findTables(ctx, conn)
		if in.Schema = t.version; err != nil || in.Schema == 0 || in.Schema > in.Newest || in.Refused != nil {
			return nil //nolint:nilerr // Refused reports it; this release cannot interpret what a newer one writes
		}
		if err := in.content(ctx, conn); err != nil {
			return err
		}
		var moved, copied string
		if err := conn.QueryRow(ctx, exportMarks, metaMoved, metaCopy).Scan(&moved, &copied); err != nil {
			return err
		}
		in.Refused = storecopy.Refusal(moved, copied)
		return nil
	})
	if err != nil {
		return in, fmt.Errorf("inspect database: %w", err)
	}
	return in, nil
}

func (in *Inspection) content(ctx context.Context, conn *pgx.Conn) error {
	rows, err := conn.Query(ctx, inspectLanes)
	if err != nil {
		return err
	}
	var name, fault string
	var waits bool
	var parked int64
	if _, err := pgx.ForEachRow(rows, []any{&name, &fault, &waits, &parked}, func() error {
		if waits {
			in.Waiting = append(in.Waiting, name)
		}
		if fault != "" {
			in.Held[name] = fault
		}
		if parked > 0 {
			in.Parked[name] = parked
		}
		return nil
	}); err != nil {
		return err
	}
	if err := conn.QueryRow(ctx, inspectAdmins).Scan(&in.Admins); err != nil {
		return err
	}
	if in.Schema >= peopleSince {
		people := 0
		if err := conn.QueryRow(ctx, inspectPeople).Scan(&people); err != nil {
			return err
		}
		in.Admins += people
	}
	if in.Schema >= sitesSince {
		if err := conn.QueryRow(ctx, inspectSites).Scan(&in.Sites); err != nil {
			return err
		}
	}
	if in.Gap, err = inspectGap(ctx, conn); err != nil {
		return err
	}
	if rows, err = conn.Query(ctx, listNodes); err != nil {
		return err
	}
	in.Nodes, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (n NodeInfo, err error) {
		var up, heard, left int64
		err = row.Scan(&n.Name, &n.Owner, &up, &heard, &left, &n.Lanes, &n.About)
		n.Up, n.Heard, n.Left = duration(up), duration(heard), duration(left)
		return n, err
	})
	return err
}
