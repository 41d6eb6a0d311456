package sqlwrite

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"

	"github.com/go-sql-driver/mysql"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/exchange"
	"github.com/holdfast-mq/holdfast/internal/sqltext"
)

func mysqlDialect() dialect {
	return dialect{
		begin:    "start transaction read write", // a server that accepts no writes refuses this
		readOnly: "select @@innodb_read_only", yes: "1", left: leftByMySQL,
		open: openMySQL, run: runMySQL, judge: judgeMySQL, declared: true, bind: bind,
	}
}

func openMySQL(dsn string, t *target) (driver.Connector, error) {
	conf, err := mysql.ParseDSN(dsn)
	switch {
	case err != nil: // the error may quote a part of the password
		return nil, errors.New("cannot be read: write user:password@tcp(host:3306)/database")
	case conf.DBName == "":
		return nil, errors.New("names no database")
	case conf.MultiStatements || conf.InterpolateParams || conf.AllowAllFiles:
		return nil, errors.New("has multiStatements, interpolateParams or allowAllFiles, with which a value could become SQL, or a file be read: remove them")
	}
	host, _, err := net.SplitHostPort(conf.Addr)
	t.plain = (conf.TLS == nil || conf.AllowFallbackToPlaintext) && conf.Net != "unix" && (err != nil || !isHere(host))
	if conf.AllowOldPasswords || conf.AllowCleartextPasswords && t.plain {
		return nil, errors.New("has allowOldPasswords, or allowCleartextPasswords without tls=true, with which whoever listens has the password: remove it")
	}
	conf.RejectReadOnly = false // it would hide the server's words behind a broken connection
	if err := strictMySQL(conf, dsn); err != nil {
		return nil, err
	}
	conf.MaxAllowedPacket = 0        // ask the server
	conf.Logger = &mysql.NopLogger{} // it would write to standard error what our errors contain
	if conf.Net == "tcp" || conf.Net == "unix" {
		conf.DialFunc = dial
	}
	from, err := mysql.NewConnector(conf)
	if err != nil {
		return nil, errors.New("has settings that do not fit together, such as an unknown tls")
	}
	t.address = conf.Addr + "/" + conf.DBName
	t.hidden.Add(conf.Passwd)
	return connector{from}, nil
}

// strictMySQL makes sessions refuse what they would otherwise change: values that do not fit,
// letters outside the character set, times of another zone.
func strictMySQL(conf *mysql.Config, dsn string) error {
	const instead = ": sessions are strict, in utf8mb4 and UTC; remove it"
	for name := range conf.Params {
		for _, weak := range []string{"sql_mode", "time_zone", "character_set", "collation", "names"} {
			if strings.Contains(strings.ToLower(name), weak) {
				return errors.New("has " + weak + instead)
			}
		}
	}
	_, query, _ := strings.Cut(dsn[strings.LastIndexByte(dsn, '/')+1:], "?")
	if settings, err := url.ParseQuery(query); err != nil || settings.Has("charset") && settings.Get("charset") != "utf8mb4" {
		return errors.New("has another charset than utf8mb4" + instead)
	}
	if conf.Collation != "" && !strings.HasPrefix(conf.Collation, "utf8mb4_") {
		return errors.New("has a collation that is not of utf8mb4" + instead)
	}
	if conf.Params == nil {
		conf.Params = map[string]string{}
	}
	conf.Params["time_zone"] = "'+00:00'"
	conf.Params["sql_mode"] = "'STRICT_ALL_TABLES,NO_ZERO_IN_DATE,NO_ZERO_DATE,ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION'"
	return conf.Apply(mysql.Charset("utf8mb4", conf.Collation))
}

// runMySQL runs a statement again if its table existed when it was prepared and did not when it
// ran. The statement has then done nothing, and if somebody is swapping the table, preparing
// reports that sooner or later. A procedure is not run again: it may have done something.
func runMySQL(ctx context.Context, conn *sql.Conn, s sqltext.Statement, args []any) (rows int64, at stage, err error) {
	const noTable = 1146
	if err := fitsPacket(ctx, conn, args); err != nil {
		return rows, preparing, err
	}
	for range 10 {
		rows, at, err = run(ctx, conn, s, args)
		if e, ok := errors.AsType[*mysql.MySQLError](err); !ok || e.Number != noTable || at == preparing || s.Verb == "call" {
			break
		}
	}
	return rows, at, err
}

// leftByMySQL recognizes two cases: a procedure that committed has ended our transaction, and a
// rollback warns of tables without transactions. MySQL does not report the first, so any failed
// procedure may have done something.
func leftByMySQL(ctx context.Context, conn *sql.Conn, s sqltext.Statement) bool {
	left := false
	if s.Verb == "call" {
		var open bool
		err := conn.QueryRowContext(ctx, "select @@in_transaction").Scan(&open)
		left = err != nil || !open
	}
	if _, err := conn.ExecContext(ctx, "rollback"); err != nil {
		return left
	}
	const notRolledBack = 1196
	warnings, err := conn.QueryContext(ctx, "show warnings")
	if err != nil {
		return left
	}
	defer func() { _ = warnings.Close() }()
	for warnings.Next() {
		var level, text string
		var code int
		if warnings.Scan(&level, &code, &text) == nil && code == notRolledBack {
			left = true
		}
	}
	return left || warnings.Err() != nil
}

// fitsPacket asks the server for its limit before a large value is sent. A value that is too large
// would break the connection, or be answered with an unknown error.
func fitsPacket(ctx context.Context, conn *sql.Conn, args []any) error {
	const large = 64 << 10
	size := 0
	for _, v := range args {
		switch v := v.(type) {
		case string:
			size = max(size, len(v))
		case []byte:
			size = max(size, len(v))
		}
	}
	if size < large {
		return nil
	}
	var most int
	if err := conn.QueryRowContext(ctx, "select @@max_allowed_packet").Scan(&most); err != nil {
		return err
	}
	if size > most {
		return refused(codeData, fmt.Errorf("a value has %d bytes, and the database takes at most %d (max_allowed_packet)", size, most))
	}
	return nil
}

func judgeMySQL(err error) (verdict, bool) {
	for _, known := range []error{
		mysql.ErrCleartextPassword, mysql.ErrNativePassword, mysql.ErrOldPassword, mysql.ErrUnknownPlugin, mysql.ErrOldProtocol,
	} {
		if errors.Is(err, known) { // client and server do not agree on how to log in
			return verdict{outcome: holdfast.LaneFault, code: codeCredentials, number: "nothing that we may follow", text: known.Error()}, true
		}
	}
	if errors.Is(err, mysql.ErrNoTLS) {
		return verdict{outcome: holdfast.LaneFault, code: exchange.TLS, number: "that it has no TLS"}, true
	}
	if errors.Is(err, mysql.ErrPktTooLarge) {
		return verdict{outcome: holdfast.Permanent, code: codeData, number: "that a packet is too large"}, true
	}
	e, ok := errors.AsType[*mysql.MySQLError](err)
	if !ok {
		return verdict{}, false
	}
	v := verdict{number: strconv.Itoa(int(e.Number)), text: e.Message}
	v.outcome, v.code = classOfMySQL(e.Number, string(e.SQLState[:]))
	v.gone = v.code == codeGone
	v.unsure = e.Number == 1180 || e.Number == 1030 // an error of the storage engine
	return v, true
}

// classOfMySQL classifies by the number where that says more than the SQLSTATE: many errors have
// only HY000, and 42000 is much more than wrong SQL.
func classOfMySQL(number uint16, state string) (holdfast.Outcome, string) {
	switch number {
	case 1062, 1169, 1557, 1586, 1761, 1762: // duplicate key, of an index, a foreign key's child, by name
		return holdfast.Permanent, codeDuplicate
	case 3819, 4025: // check constraint: MySQL, MariaDB
		return holdfast.Permanent, codeConstraint
	case 1153, 1264, 1265, 1292, 1364, 1366, 1406, 1411, 1525, 3140, 4078, 4079: // too large, truncated, no default, no such value, no JSON
		return holdfast.Permanent, codeData
	case 1267, 1271, 1288, 1295, 1390, 1442, 1471: // collations, what cannot be changed, prepared or used in a trigger
		return holdfast.Permanent, codeSQL
	case 1142, 1143, 1227, 1370: // table, column, privilege, routine
		return holdfast.Permanent, codeDenied
	case 1213, 1614:
		return holdfast.Transient, codeDeadlock
	case 1205, 1689, 3572:
		return holdfast.Transient, codeLock
	case 1020, 1412, 1615, 3101: // changed since it was read, by another or by a definition; conflict within a group
		return holdfast.Transient, codeSerial
	case 1317, 1969, 3024: // killed; ran too long: MariaDB, MySQL
		return holdfast.Transient, codeInterrupt
	case 1021, 1114:
		return holdfast.Transient, codeDiskFull
	case 1037, 1038, 1041, 1206:
		return holdfast.Transient, codeResources
	case 1040, 1203, 1226:
		return holdfast.Transient, codeConnections
	case 1053, 1079, 1080, 1927, 3169, 4031: // shutdown; a killed or idle connection
		return holdfast.Transient, codeGone
	case 1642, 1643, 1644: // SIGNAL, whatever its SQLSTATE
		return holdfast.Permanent, codeRaised
	case 1016, 1017, 1018, 1023, 1024, 1026, 1030, 1034, 1035, 1135, 1180, 1181, 1194, 1195, 1197, 1296, 1297, 1429, 1430, 3100: // files, engines, threads, servers behind a table
		return holdfast.Transient, codeServer
	case 1129, 1130, 1251, 1275, 1524, 1698, 1820, 1862, 3118, 3159, 3955, 4151: // host, plugin, expired or locked account, TLS demanded
		return holdfast.LaneFault, codeCredentials
	case 1044, 1046, 1049:
		return holdfast.LaneFault, codeDatabase
	case 1290, 1792, 1836:
		return holdfast.LaneFault, codeReadOnly
	}
	return classOfState(state[:min(len(state), 2)])
}

// classOfState classifies by the class of an SQLSTATE.
func classOfState(class string) (holdfast.Outcome, string) {
	switch class {
	case "21", "22":
		return holdfast.Permanent, codeData
	case "23", "44":
		return holdfast.Permanent, codeConstraint
	case "0A", "42":
		return holdfast.Permanent, codeSQL
	case "45":
		return holdfast.Permanent, codeRaised
	case "28":
		return holdfast.LaneFault, codeCredentials
	case "40":
		return holdfast.Transient, codeSerial
	case "08": // also a Galera node that is not ready
		return holdfast.Transient, codeServer
	}
	return holdfast.Transient, codeUnknown
}
