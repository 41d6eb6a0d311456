package sqlwrite

import (
	"context"
	"database/sql/driver"
	"errors"
	"net"
	"strconv"

	mssql "github.com/microsoft/go-mssqldb"
	"github.com/microsoft/go-mssqldb/msdsn"

	"github.com/holdfast-mq/holdfast"
)

func sqlserverDialect() dialect {
	return dialect{
		begin: "begin transaction", readOnly: "select cast(databasepropertyex(db_name(), 'Updateability') as varchar(20))", yes: "READ_ONLY",
		open: openSQLServer, run: run, judge: judgeSQLServer, declared: true, bind: bindSigned,
	}
}

func openSQLServer(dsn string, t *target) (driver.Connector, error) {
	const fix = "write sqlserver://user:password@host:1433?database=name, with %XX for special characters"
	if conf, err := msdsn.Parse(dsn); err == nil && conf.Host != "" && conf.Database != "" {
		from := mssql.NewConnectorConfig(conf)
		from.Dialer = hostDialer(conf.Host)
		t.address = conf.Host + "/" + conf.Database
		if conf.Port != 0 {
			t.address = net.JoinHostPort(conf.Host, strconv.FormatUint(conf.Port, 10)) + "/" + conf.Database
		}
		t.plain = conf.Encryption != msdsn.EncryptionRequired && conf.Encryption != msdsn.EncryptionStrict && !isHere(conf.Host)
		t.hidden.Add(conf.Password)
		return connector{from}, nil
	} else if err == nil {
		return nil, errors.New("names no host, or no database: " + fix)
	}
	return nil, errors.New("cannot be read: " + fix) // the driver's text may quote a part of the password
}

// hostDialer receives names instead of addresses. Otherwise the driver would resolve them itself, without a time
// limit.
type hostDialer string

// DialContext implements mssql.Dialer.
func (hostDialer) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	return dial(ctx, network, address)
}

// HostName implements mssql.HostDialer.
func (h hostDialer) HostName() string { return string(h) }

func judgeSQLServer(err error) (verdict, bool) {
	e, ok := errors.AsType[mssql.Error](err)
	if !ok {
		return verdict{}, false
	}
	// The last of several errors mostly says only that the statement has ended.
	for _, one := range e.All {
		if one.Class > 10 {
			e = one
			break
		}
	}
	v := verdict{number: strconv.Itoa(int(e.Number)), text: e.Message}
	v.outcome, v.code = classOfSQLServer(e.Number, e.Class)
	v.gone = v.code == codeGone
	// SQL Server reads a statement only as it runs it. A name that is missing in a trigger or procedure comes with the
	// name of that one.
	v.own = (e.Number == 207 || e.Number == 208 || e.Number == 2812) && e.ProcName == ""
	v.unsure = e.Class >= 20 // it ends the connection
	return v, true
}

// classOfSQLServer classifies by number, or else by severity. The writer of the statement can correct 11 to 16. 17 and
// above are faults of the server.
func classOfSQLServer(number int32, severity uint8) (holdfast.Outcome, string) {
	switch number {
	case 2601, 2627:
		return holdfast.Permanent, codeDuplicate
	case 515, 547, 550:
		return holdfast.Permanent, codeConstraint
	case 220, 232, 241, 242, 244, 245, 248, 257, 295, 8114, 8115, 8134, 8152, 2628, 9804:
		return holdfast.Permanent, codeData
	case 229, 230, 262, 297, 300:
		return holdfast.Permanent, codeDenied
	case 1205:
		return holdfast.Transient, codeDeadlock
	case 1222:
		return holdfast.Transient, codeLock
	case 3935, 3941, 3960, 3961, 41301, 41302, 41305, 41325: // snapshots, and tables in memory
		return holdfast.Transient, codeSerial
	case 701, 802, 1204, 8628, 8645, 8651, 10928, 10929:
		return holdfast.Transient, codeResources
	case 1101, 1105, 9002:
		return holdfast.Transient, codeDiskFull
	case 17809, 10936:
		return holdfast.Transient, codeConnections
	case 596, 922, 927, 976, 983, 6005, 6006, 17142, 40197, 40501, 40613, 49918, 49919, 49920: // it ends, recovers, or moves
		return holdfast.Transient, codeGone
	case 916, 4060, 4062, 4063, 4064, 911:
		return holdfast.LaneFault, codeDatabase
	case 18401, 18451: // it begins or ends, and lets nobody in
		return holdfast.Transient, codeGone
	case 3906, 3908, 978:
		return holdfast.LaneFault, codeReadOnly
	}
	switch {
	case number >= 18450 && number <= 18499: // logins
		return holdfast.LaneFault, codeCredentials
	case number >= 50000:
		return holdfast.Permanent, codeRaised
	case severity >= 11 && severity <= 16:
		return holdfast.Permanent, codeSQL
	}
	return holdfast.Transient, codeServer
}
