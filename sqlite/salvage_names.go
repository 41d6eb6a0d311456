package sqlite

import (
	"context"
	"slices"

	"github.com/holdfast-mq/holdfast/internal/sqlitefile"
	"github.com/holdfast-mq/holdfast/rows"
)

// eachOf calls yield for each row of a table that has the right number of columns.
func (s *salvage) eachOf(table string, columns int, yield func(r sqlitefile.Row)) {
	s.old.Table(s.roots[table], func(r sqlitefile.Row) {
		if len(r.Values) == columns {
			yield(r)
		} else {
			s.misfits++
		}
	})
}

// entries is eachOf for an index, whose last column is the row's id, or for a table without row
// ids.
func (s *salvage) entries(index string, columns int, yield func(r sqlitefile.Row)) (whole bool) {
	return s.old.Index(s.roots[index], func(r sqlitefile.Row) {
		if len(r.Values) == columns {
			yield(r)
		}
	})
}

// Columns of tables, and of their unique indexes with the row's id.
const (
	laneColumns, laneIndexColumns     = 8, 2
	routeColumns, routeIndexColumns   = 5, 5
	sourceColumns, sourceIndexColumns = 2, 2
	messageColumns, messageIndex      = 19, 2
	bodyColumns, bundleColumns        = 9, 9
	inboxColumns, inboxIndex          = 11, 3
	inboxBodyColumns                  = 6
	eventColumnCount                  = 18
)

// findNames reads the names that many messages share, from the tables and from the indexes, which
// hold them a second time.
func (s *salvage) findNames() {
	s.eachOf("hf_lane", laneColumns, s.laneRow)
	s.entries("sqlite_autoindex_hf_lane_1", laneIndexColumns, func(r sqlitefile.Row) { s.lane(r.Int(1), r.Text(0)) })
	s.eachOf("hf_route", routeColumns, s.routeRow)
	s.entries("sqlite_autoindex_hf_route_1", routeIndexColumns, func(r sqlitefile.Row) {
		s.route(r.Int(4), oldRoute{r.Int(0), r.Text(1), r.Text(2), r.Text(3)})
	})
	s.eachOf("hf_source", sourceColumns, func(r sqlitefile.Row) { s.source(r.ID, r.Text(1)) })
	s.entries("sqlite_autoindex_hf_source_1", sourceIndexColumns, func(r sqlitefile.Row) { s.source(r.Int(1), r.Text(0)) })
	if !s.damagedSoFar() {
		return
	}
	s.orphans(func(table bool, r sqlitefile.Row) {
		_, number := last(r).(int64)
		switch {
		case table && len(r.Values) == routeColumns && !r.Null(1) && r.Int(1) > 0 && r.Null(0):
			s.routeRow(r)
		case table && len(r.Values) == laneColumns && r.Text(1) != "" && r.Null(0):
			s.laneRow(r)
		case table && len(r.Values) == sourceColumns && r.Text(1) != "" && r.Null(0):
			s.source(r.ID, r.Text(1))
		case !table && number && len(r.Values) == routeIndexColumns && r.Text(1) != "":
			s.route(r.Int(4), oldRoute{r.Int(0), r.Text(1), r.Text(2), r.Text(3)})
		case !table && number && len(r.Values) == laneIndexColumns && r.Text(0) != "":
			// The entry may be a lane's or a source's: a wrong one matches no hash.
			s.lane(r.Int(1), r.Text(0))
			s.source(r.Int(1), r.Text(0))
		}
	})
}

func last(r sqlitefile.Row) any {
	if len(r.Values) == 0 {
		return nil
	}
	return r.Values[len(r.Values)-1]
}

func (s *salvage) laneRow(r sqlitefile.Row) {
	s.lane(r.ID, r.Text(1))
	// The first column is the number, which rows.Lane does not have.
	row, ok := s.described(rows.Of((*rows.Lane)(nil)), sqlitefile.Row{Values: r.Values[1:]})
	if _, known := s.orders[r.Text(1)]; !ok || known {
		return
	}
	order := r.Int(2)
	if order < orderLoose || order > orderFreeing {
		order = orderLoose
	}
	s.orders[r.Text(1)] = oldLane{order, row.(*rows.Lane)} //nolint:forcetypeassert // the table was given
}

func (s *salvage) routeRow(r sqlitefile.Row) {
	s.route(r.ID, oldRoute{r.Int(1), r.Text(2), r.Text(3), r.Text(4)})
}

func (s *salvage) lane(number int64, destination string) {
	if destination != "" && !slices.Contains(s.lanes[number], destination) {
		s.lanes[number] = append(s.lanes[number], destination)
	}
}

func (s *salvage) route(number int64, r oldRoute) {
	if !slices.Contains(s.routes[number], r) {
		s.routes[number] = append(s.routes[number], r)
	}
}

func (s *salvage) source(number int64, name string) {
	if name != "" && !slices.Contains(s.sources[number], name) {
		s.sources[number] = append(s.sources[number], name)
	}
}

// settings salvages what the operators and the journal's followers rely on.
func (s *salvage) settings(ctx context.Context) error {
	events := s.old.Last(s.roots["hf_entry"])
	s.eachOf("sqlite_sequence", 2, func(r sqlitefile.Row) {
		if r.Text(0) == "hf_entry" {
			events = max(events, r.Int(1))
		}
	})
	if events > 1<<50 {
		events = 1 << 50 // more than anybody writes: the number is damaged
	}
	type cursor struct {
		name string
		at   int64
	}
	var cursors []cursor
	s.entries("hf_follower", 2, func(r sqlitefile.Row) {
		if name, at := r.Text(0), r.Int(1); name != "" {
			cursors = append(cursors, cursor{name, min(max(at, 0), events)})
		}
	})
	return s.add(ctx, 0, func(tx *writeTx) error {
		// New events must come after those that followers have read.
		if _, err := tx.exec(salvageSequence, events); err != nil {
			return err
		}
		for _, c := range cursors {
			if _, err := tx.exec(salvageFollower, c.name, c.at); err != nil {
				return err
			}
			tx.after = append(tx.after, func() { s.db.followed.Store(true) })
		}
		return nil
	})
}

// intOrNull binds column i as it was.
func intOrNull(r sqlitefile.Row, i int) any {
	if r.Null(i) {
		return nil
	}
	return r.Int(i)
}
