package postgres_test

import (
	"bytes"
	"context"
	stdsql "database/sql"
	"errors"
	"fmt"
	"io"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/postgres"
)

// OrderApproved names its endpoint once, for both ends.
type OrderApproved struct {
	Order int `json:"order"`
}

func (OrderApproved) Endpoint() string { return "OrderApproved" }

// openShop opens the outbox and the inbox in the database of a shop.
func openShop(ctx context.Context) (db *postgres.DB, end func()) {
	db, err := postgres.Open(ctx, os.Getenv("DATABASE_URL"), postgres.Options{Source: "shop"}.Relaxed())
	check(err)
	return db, func() { check(db.Close()) }
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}

// An order and the message that tells of it commit together, in the program's
// own database; a dispatcher delivers the message.
func Example() {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	db, end := openShop(ctx) // postgres.Open
	defer end()

	err := db.Do(ctx, func(ctx context.Context, tx *postgres.Tx) error { // tx is a pgx.Tx, too
		if _, err := tx.Exec(ctx, "INSERT INTO orders VALUES (42)"); err != nil {
			return err
		}
		return holdfast.Send(ctx, tx, "inventory", OrderApproved{42})
	})
	check(err)

	d := &holdfast.Dispatcher{Store: db, Routes: map[string]holdfast.Route{
		"inventory": {Deliverer: holdfast.DelivererFunc(func(_ context.Context, m holdfast.Message) (holdfast.Receipt, error) {
			fmt.Printf("%s %s\n", m.Endpoint, m.Payload)
			stop()
			return holdfast.Receipt{ID: m.ID}, nil
		})},
	}}
	check(d.Run(ctx))
}

// In a transaction of a pool of the program's own, a message exists if it commits.
func ExampleDB_In() {
	ctx := context.Background()
	db, end := openShop(ctx)
	defer end()
	pool, err := pgxpool.New(ctx, os.Getenv("DATABASE_URL"))
	check(err)
	defer pool.Close()

	approve := func(order int, stock error) error {
		return pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
			if _, err := tx.Exec(ctx, "INSERT INTO orders VALUES ($1)", order); err != nil {
				return err
			}
			if err := holdfast.Send(ctx, db.In(tx), "inventory", OrderApproved{order}); err != nil {
				return err
			}
			return stock
		})
	}
	fmt.Println(approve(43, errors.New("out of stock")))
	fmt.Println(approve(44, nil))
}

// The same with database/sql and the driver of pgx.
func ExampleDB_InSQL() {
	ctx := context.Background()
	db, end := openShop(ctx)
	defer end()
	config, err := pgx.ParseConfig(os.Getenv("DATABASE_URL"))
	check(err)
	handle := stdlib.OpenDB(*config) // or sql.Open("pgx", …)
	defer handle.Close()

	approve := func(order int) error {
		tx, err := handle.BeginTx(ctx, &stdsql.TxOptions{})
		if err != nil {
			return err
		}
		defer func() { _ = tx.Rollback() }() // after a commit it does nothing
		if _, err := tx.ExecContext(ctx, "INSERT INTO orders VALUES ($1)", order); err != nil {
			return err
		}
		if err := holdfast.Send(ctx, db.InSQL(tx), "inventory", OrderApproved{order}); err != nil {
			return err
		}
		return tx.Commit()
	}
	fmt.Println(approve(45))
}

// A handler's effect and the memory of the message's id are one commit: a
// repeat has no second effect, and gets the first answer.
func ExampleDB_Inbox() {
	ctx := context.Background()
	db, end := openShop(ctx)
	defer end()

	m := holdfast.Message{ID: "order-42", Source: "shop", Endpoint: "OrderApproved", Payload: []byte(`{"order":42}`)}
	for range 2 {
		receipt, err := db.Inbox().Process(ctx, m, func(ctx context.Context, tx *postgres.Tx, m holdfast.Message) ([]byte, error) {
			fmt.Printf("reserve %s\n", m.Payload)
			_, err := tx.Exec(ctx, "INSERT INTO reserved VALUES (42)")
			return []byte(`"reserved"`), err
		})
		fmt.Printf("%s duplicate=%t %v\n", receipt.Response, receipt.Duplicate, err)
	}
}

// The examples need a server: they are run here.
func TestExamples(t *testing.T) { //nolint:paralleltest // what they print is caught
	dsn := database(t)
	statements(t, dsn, "CREATE TABLE orders (id integer PRIMARY KEY)", "CREATE TABLE reserved (order_id integer PRIMARY KEY)")
	t.Setenv("DATABASE_URL", dsn)
	for _, e := range []struct {
		name, prints string
		run          func()
	}{
		{"Example", "OrderApproved {\"order\":42}\n", Example},
		{"In", "out of stock\n<nil>\n", ExampleDB_In},
		{"InSQL", "<nil>\n", ExampleDB_InSQL},
		{"Inbox", "reserve {\"order\":42}\n\"reserved\" duplicate=false <nil>\n\"reserved\" duplicate=true <nil>\n", ExampleDB_Inbox},
	} {
		if diff := cmp.Diff(e.prints, printed(t, e.run)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", e.name, diff)
		}
	}
}

// printed runs a function and returns what it prints.
func printed(t *testing.T, run func()) string {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout := os.Stdout
	os.Stdout = w
	defer func() { os.Stdout = stdout }()
	text := make(chan string)
	go func() {
		var b bytes.Buffer
		_, _ = io.Copy(&b, r)
		text <- b.String()
	}()
	run()
	_ = w.Close()
	return <-text
}
