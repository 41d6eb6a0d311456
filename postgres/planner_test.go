package postgres_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
)

// planner makes plans.
type planner struct{ *pgx.Conn }

func newPlanner(t testing.TB, c *pgx.Conn, err error) planner {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close(context.Background()) })
	return planner{c}
}

// planNode is a step of a plan, as EXPLAIN writes it.
type planNode struct {
	Type      string     `json:"Node Type"`
	Relation  string     `json:"Relation Name"`
	Operation string     `json:"Operation"`
	Role      string     `json:"Parent Relationship"`
	Index     string     `json:"Index Name"`
	Cond      string     `json:"Index Cond"`
	Filter    string     `json:"Filter"`
	OneTime   string     `json:"One-Time Filter"`
	Plans     []planNode `json:"Plans"`
}

// planFault is a step of a plan that reads too much.
type planFault struct{ relation, index, text string }

// look names the faults of a statement's plan. The mode is the server's
// plan_cache_mode.
func (p planner) look(ctx context.Context, mode, statement string) (faults []planFault, err error) {
	if _, err := p.Exec(ctx, "SET plan_cache_mode = "+mode); err != nil {
		return nil, err
	}
	d, err := p.Prepare(ctx, "look", statement)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, p.Deallocate(ctx, "look")) }()
	execute := "EXECUTE look"
	for i, oid := range d.ParamOIDs {
		value, ok := p.value(oid)
		if !ok {
			return nil, fmt.Errorf("the test has no value for $%d, of the type %d", i+1, oid)
		}
		execute += map[bool]string{true: "(", false: ", "}[i == 0] + value
	}
	if len(d.ParamOIDs) > 0 {
		execute += ")"
	}
	whole, err := p.explain(ctx, "(FORMAT JSON)", execute)
	if err != nil {
		return nil, err
	}
	var list []struct {
		Plan planNode `json:"Plan"`
	}
	if err := json.Unmarshal([]byte(whole), &list); err != nil || len(list) != 1 {
		return nil, fmt.Errorf("%d plans: %w", len(list), err)
	}
	columns, err := p.indexes(ctx)
	if err != nil {
		return nil, err
	}
	if faults = list[0].Plan.faults(columns, false); len(faults) == 0 {
		return nil, nil
	}
	text, err := p.explain(ctx, "", execute)
	for i := range faults {
		faults[i].text += " (" + mode + ")\n" + text
	}
	return faults, err
}

// indexes are the columns of each index.
func (p planner) indexes(ctx context.Context) (map[string][]string, error) {
	rows, err := p.Query(ctx, `SELECT c.relname::text, array_agg(a.attname::text ORDER BY a.attnum) FROM pg_class AS c JOIN pg_attribute AS a ON a.attrelid = c.oid
		WHERE c.relkind = 'i' AND c.relname LIKE 'hf\_%' GROUP BY c.relname`)
	if err != nil {
		return nil, err
	}
	columns := map[string][]string{}
	var name string
	var list []string
	_, err = pgx.ForEachRow(rows, []any{&name, &list}, func() error {
		columns[name] = slices.Clone(list)
		return nil
	})
	return columns, err
}

func (p planner) explain(ctx context.Context, how, execute string) (string, error) {
	rows, err := p.Query(ctx, "EXPLAIN "+how+" "+execute, pgx.QueryExecModeSimpleProtocol)
	if err != nil {
		return "", err
	}
	lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
	return strings.Join(lines, "\n"), err
}

// value is one that a parameter may have: of rows that are there, of the
// biggest lane, and of pages as long as the store reads.
func (p planner) value(oid uint32) (string, bool) {
	var seqs, ids []string
	for seq := 2000; seq < 2020; seq++ {
		seqs = append(seqs, fmt.Sprint(seq))
		ids = append(ids, fmt.Sprintf(`"\\x%016x"`, seq))
	}
	t, ok := p.TypeMap().TypeForOID(oid)
	if !ok {
		return "", false
	}
	values := map[string]string{
		"int2": "3", "int4": "1", "int8": "20", "bool": "true", "text": "a", "bytea": `\x00000000000007d0`, "name": "public", "oid": "5",
		"int2[]": "{2,3}", "int4[]": "{1,2}", "int8[]": "{" + strings.Join(seqs, ",") + "}", "bool[]": "{true,false}",
		"text[]": "{k1,k2}", "bytea[]": "{" + strings.Join(ids, ",") + "}",
	}
	name := strings.TrimPrefix(t.Name, "_")
	if name != t.Name {
		name += "[]"
	}
	v, ok := values[name]
	return fmt.Sprintf("'%s'::%s", v, name), ok
}

// bigTables are those that grow with the messages.
var bigTables = regexp.MustCompile(`\bhf_(bundle|message|queue|final|entry|inbox|inbox_body|notification|notification_end|target)\b`)

// coarse are columns of which few values are shared by all rows: an index that
// finds rows by them alone reads a whole lane, or all that is parked.
var coarse = []string{"lane", "state", "blocked", "deaths", "kept", "source"}

var (
	equal = regexp.MustCompile(`\((\w+) = `)
	// The streaming steps take no more from the step below than what is asked of them.
	streaming = []string{"Limit", "LockRows", "Subquery Scan", "Result", "ProjectSet", "Nested Loop", "Append", "ModifyTable"}
)

// faults names the steps of a plan that read more of a big table than what they
// look for. Good are those that find rows by equality of a column with many
// values, and those that a limit stops and that throw nothing away meanwhile.
func (n planNode) faults(columns map[string][]string, limited bool) (list []planFault) {
	if bigTables.MatchString(n.Relation) && n.Operation == "" && n.Type != "ModifyTable" {
		if problem := n.problem(columns[n.Index], limited); problem != "" {
			list = append(list, planFault{n.Relation, n.Index, fmt.Sprintf("%s on %s %s", n.Type, n.Relation, problem)})
		}
	}
	if n.OneTime == "false" {
		list = append(list, planFault{text: "the values of the test leave nothing to be planned"})
	}
	limited = n.Type == "Limit" || limited && slices.Contains(streaming, n.Type)
	for _, below := range n.Plans {
		list = append(list, below.faults(columns, limited && (below.Role == "Outer" || below.Role == "Subquery" || below.Role == "Member"))...)
	}
	return list
}

func (n planNode) problem(columns []string, limited bool) string {
	if n.Type != "Index Scan" && n.Type != "Index Only Scan" {
		return "reads all of it"
	}
	by := "by " + n.Index + ": "
	if len(columns) == 0 || n.Cond != "" && !strings.Contains(n.Cond, columns[0]) {
		return by + "nothing is said of its first column" // so all of it is walked over, for each value
	}
	equals := map[string]bool{}
	for _, m := range equal.FindAllStringSubmatch(n.Cond, -1) {
		equals[m[1]] = true
	}
	found := false
	for _, c := range columns {
		if !equals[c] {
			break
		}
		if !slices.Contains(coarse, c) {
			return ""
		}
		found = true
	}
	switch {
	case !limited:
		return by + "no limit ends it"
	case !found && n.Filter != "":
		return by + "it throws away what it does not look for"
	}
	return ""
}
