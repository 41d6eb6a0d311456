package sqlwrite

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/holdfast-mq/holdfast/internal/sqltext"
)

// spot describes what PostgreSQL accepts for a parameter.
type spot struct {
	is      sqltext.Type // zero: text in the form of the type itself
	element *spot        // of a list
	zoned   bool         // a time must have a zone
	refuses string       // why no value is accepted
}

// spotOf describes a type. asked reports that the catalog was queried, so that the server has
// forgotten the statement.
func spotOf(ctx context.Context, pg *pgconn.PgConn, known *pgtype.Map, oid uint32) (s spot, asked bool, err error) {
	most := sqltext.Type{Name: sqltext.Decimal, Precision: 131072 + 16383, Scale: 16383}
	name := map[uint32]string{
		pgtype.BoolOID: sqltext.Boolean, pgtype.Int2OID: sqltext.Integer, pgtype.Int4OID: sqltext.Integer, pgtype.Int8OID: sqltext.Integer, pgtype.OIDOID: sqltext.Integer,
		pgtype.Float4OID: sqltext.Real, pgtype.Float8OID: sqltext.Double, pgtype.JSONOID: sqltext.JSON, pgtype.JSONBOID: sqltext.JSON, pgtype.ByteaOID: sqltext.Bytes,
		pgtype.TextOID: sqltext.Text, pgtype.VarcharOID: sqltext.Text, pgtype.BPCharOID: sqltext.Text, pgtype.NameOID: sqltext.Text, pgtype.QCharOID: sqltext.Text,
		pgtype.DateOID: sqltext.Date,
	}[oid]
	const money = 790
	switch {
	case name != "":
		return spot{is: sqltext.Type{Name: name}}, false, nil
	case oid == pgtype.NumericOID:
		return spot{is: most}, false, nil
	case oid == pgtype.TimeOID:
		return spot{is: sqltext.Type{Name: sqltext.Time, Scale: 6}}, false, nil
	case oid == pgtype.TimestampOID || oid == pgtype.TimestamptzOID:
		return spot{is: sqltext.Type{Name: sqltext.Timestamp, Scale: 6}, zoned: oid == pgtype.TimestamptzOID}, false, nil
	case oid == money:
		return spot{refuses: "has a parameter of type money, which each session reads in its own way: cast it from numeric"}, false, nil
	}
	element := uint32(0)
	if t, ok := known.TypeForOID(oid); !ok {
		asked = true
		var base uint32
		if base, element, err = lookUp(ctx, pg, oid); err != nil {
			return spot{}, true, err
		}
		if base != 0 { // a domain
			s, _, err = spotOf(ctx, pg, known, base)
			return s, true, err
		}
	} else if list, ok := t.Codec.(*pgtype.ArrayCodec); ok {
		element = list.ElementType.OID
	}
	if element == 0 {
		return spot{}, asked, nil
	}
	one, more, err := spotOf(ctx, pg, known, element)
	return spot{element: &one}, asked || more, err
}

// lookUp asks the catalog for the parts of a type: a domain has a base, a list has elements.
func lookUp(ctx context.Context, pg *pgconn.PgConn, oid uint32) (base, element uint32, err error) {
	r := pg.ExecParams(ctx, "select typbasetype, case when typcategory = 'A' then typelem else 0 end from pg_catalog.pg_type where oid = $1::oid",
		[][]byte{strconv.AppendUint(nil, uint64(oid), 10)}, nil, nil, nil).Read()
	if r.Err != nil {
		return 0, 0, r.Err
	}
	var numbers [2]uint32 // zero for a type that is gone by now
	for _, row := range r.Rows {
		for i, text := range row {
			n, err := strconv.ParseUint(string(text), 10, 32)
			if err != nil {
				return 0, 0, err
			}
			numbers[i] = uint32(n)
		}
	}
	return numbers[0], numbers[1], nil
}

// filled makes PostgreSQL parse a statement and describe its parameters, and converts the values to
// texts for them; nil is NULL. The statement has no name.
func filled(ctx context.Context, pg *pgconn.PgConn, known *pgtype.Map, s sqltext.Statement, args []any) ([][]byte, error) {
	d, err := pg.Prepare(ctx, "", s.Text, nil)
	if err != nil {
		return nil, err
	}
	values, forgotten := make([][]byte, len(args)), false
	for i, arg := range args {
		v := arg.(jsontext.Value)
		if v.Kind() == 'n' {
			continue
		}
		place, asked, err := spotOf(ctx, pg, known, d.ParamOIDs[i])
		if err != nil {
			return nil, err
		}
		forgotten = forgotten || asked
		text, err := place.text(s.Types[i], v)
		if err != nil {
			return nil, unfitting(s.Names[i], err)
		}
		values[i] = []byte(text)
	}
	if forgotten {
		_, err = pg.Prepare(ctx, "", s.Text, nil)
	}
	return values, err
}

// text returns a value in a form that PostgreSQL reads in only one way. It refuses a value that
// would not arrive unchanged. A declared type is checked first: it may be narrower.
func (s spot) text(declared sqltext.Type, v jsontext.Value) (string, error) {
	if declared.Name != "" {
		value, err := valueOf(declared, v)
		if err != nil {
			return "", err
		}
		if b, ok := value.([]byte); ok {
			if s.is.Name != sqltext.Bytes {
				return "", fmt.Errorf("is declared as %s, and its place is not bytea", declared)
			}
			return `\x` + hex.EncodeToString(b), nil
		}
	}
	switch {
	case s.refuses != "":
		return "", errors.New(s.refuses)
	case s.element != nil:
		return s.list(v)
	case s.is.Name == "":
		return stringOf(sqltext.Type{Name: "a string in the form of its own type"}, v)
	}
	value, err := valueOf(s.is, v)
	if err != nil {
		return "", err
	}
	switch value := value.(type) {
	case []byte:
		return `\x` + hex.EncodeToString(value), nil
	case float64:
		bits := 64
		if s.is.Name == sqltext.Real {
			bits = 32
		}
		return strconv.FormatFloat(value, 'g', -1, bits), nil
	}
	if s.zoned {
		if !hasZone(v) {
			return "", errors.New("is a time without a zone, and its parameter takes one with it, such as 2026-11-28T13:04:05Z")
		}
		return fmt.Sprint(value, "+00"), nil
	}
	return fmt.Sprint(value), nil
}

// list returns a list in PostgreSQL's form. A list of lists has more dimensions.
func (s spot) list(v jsontext.Value) (string, error) {
	if v.Kind() != '[' {
		return "", unfit(sqltext.Type{Name: "a list"}, v)
	}
	elements, err := listOf(v)
	if err != nil {
		return "", err
	}
	texts := make([]string, len(elements))
	for i, e := range elements {
		switch {
		case e.Kind() == 'n':
			texts[i] = "NULL"
		case e.Kind() == '[' && s.element.is.Name != sqltext.JSON:
			texts[i], err = s.list(e)
		default:
			var text string
			text, err = s.element.text(sqltext.Type{}, e)
			texts[i] = `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(text) + `"`
		}
		if err != nil {
			return "", fmt.Errorf("has an element that %w", err)
		}
	}
	return "{" + strings.Join(texts, ",") + "}", nil
}
