package sqlwrite_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/adapter/sqlwrite"
)

// SF-03: codes that no server of the tests can be brought to give.
func TestCodesOfRareTroubles(t *testing.T) {
	t.Parallel()
	for state, want := range map[string]struct {
		outcome holdfast.Outcome
		code    string
	}{
		"53100": {holdfast.Transient, "disk_full"}, "53200": {holdfast.Transient, "out_of_resources"}, "53300": {holdfast.Transient, "too_many_connections"},
		"57P03": {holdfast.Transient, "shutting_down"}, "57014": {holdfast.Transient, "interrupted"}, "58030": {holdfast.Transient, "server_error"},
		"XX000": {holdfast.Transient, "server_error"}, "08006": {holdfast.Transient, "server_error"}, "40002": {holdfast.Permanent, "constraint"},
		"23P01": {holdfast.Permanent, "constraint"}, "57P04": {holdfast.LaneFault, "no_database"}, "28000": {holdfast.LaneFault, "credentials_refused"},
		"": {holdfast.Transient, "unknown_error"}, "4": {holdfast.Transient, "unknown_error"}, "ZZZZZ": {holdfast.Transient, "unknown_error"},
		"25P03": {holdfast.Transient, "shutting_down"},
	} {
		o, code, answered := sqlwrite.Judge("postgres", fmt.Errorf("around it: %w", &pgconn.PgError{Code: state}))
		if o != want.outcome || code != want.code || !answered {
			t.Errorf("%q: got %v %s, want %v %s", state, o, code, want.outcome, want.code)
		}
	}
	for number, want := range map[uint16]struct {
		state   string
		outcome holdfast.Outcome
		code    string
	}{
		1021: {"HY000", holdfast.Transient, "disk_full"}, 1114: {"HY000", holdfast.Transient, "disk_full"}, 1040: {"08004", holdfast.Transient, "too_many_connections"},
		1203: {"42000", holdfast.Transient, "too_many_connections"}, 1053: {"08S01", holdfast.Transient, "shutting_down"}, 1047: {"08S01", holdfast.Transient, "server_error"},
		1020: {"HY000", holdfast.Transient, "serialization"}, 1969: {"70100", holdfast.Transient, "interrupted"}, 1030: {"HY000", holdfast.Transient, "server_error"},
		3572: {"HY000", holdfast.Transient, "locked"}, 3024: {"HY000", holdfast.Transient, "interrupted"}, 3819: {"HY000", holdfast.Permanent, "constraint"},
		1153: {"08S01", holdfast.Permanent, "bad_value"}, 1364: {"HY000", holdfast.Permanent, "bad_value"}, 1370: {"42000", holdfast.Permanent, "denied"},
		1290: {"HY000", holdfast.LaneFault, "read_only"}, 4151: {"HY000", holdfast.LaneFault, "credentials_refused"}, 1130: {"HY000", holdfast.LaneFault, "credentials_refused"},
		65535: {"\x00\x00\x00\x00\x00", holdfast.Transient, "unknown_error"},
	} {
		e := &mysql.MySQLError{Number: number}
		copy(e.SQLState[:], want.state)
		o, code, answered := sqlwrite.Judge("mysql", fmt.Errorf("around it: %w", e))
		if o != want.outcome || code != want.code || !answered {
			t.Errorf("%d: got %v %s, want %v %s", number, o, code, want.outcome, want.code)
		}
	}
	if o, code, _ := sqlwrite.Judge("mysql", mysql.ErrPktTooLarge); o != holdfast.Permanent || code != "bad_value" {
		t.Errorf("a packet that is too large: got %v %s", o, code)
	}
	// By type, never by text.
	for driver, text := range map[string]string{"postgres": "ERROR: x (SQLSTATE 23505)", "mysql": "Error 1062 (23000): x", "sqlite": "UNIQUE constraint failed: x (2067)"} {
		for _, err := range []error{errors.New(text), io.EOF, context.DeadlineExceeded, mysql.ErrInvalidConn} {
			if _, _, answered := sqlwrite.Judge(driver, err); answered {
				t.Errorf("%s: %v counts as an answer", driver, err)
			}
		}
	}
}
