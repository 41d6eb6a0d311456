package sqlwrite

import (
	"context"
	"database/sql"
	"errors"

	"github.com/holdfast-mq/holdfast"
)

// failed decides whose fault a failed write is (ADR 0016). It gives the connection back if it is in
// order.
func (w *Writer) failed(ctx context.Context, conn *sql.Conn, a attempt) *holdfast.Failure {
	if f, ok := errors.AsType[*holdfast.Failure](a.err); ok { // this package has refused it
		w.end(ctx, conn, a.named)
		return f
	}
	v, answered := w.dialect.judge(a.err)
	if !answered || v.outcome == holdfast.Transient && ctx.Err() != nil {
		w.end(ctx, conn, a.named)
		return w.unanswered(ctx, a.at, a.err)
	}
	if v.code == codeUnknown { // the code that raised the error does not know our classes
		v.outcome, v.code = holdfast.Permanent, codeRaised
	}
	f := w.failure(v)
	f.MaybeDelivered = a.at == committing && (v.gone || v.unsure) || a.at == writing && v.gone && !w.dialect.atomic
	if v.outcome == holdfast.LaneFault || v.gone || v.code == codeConnections {
		return w.confronted(ctx, conn, a, f)
	}
	if a.at == writing && v.code != codeDeadlock && w.dialect.left != nil && w.dialect.left(ctx, conn, a.statement) { // a deadlock has ended the transaction by itself
		f.MaybeDelivered = true
	}
	if a.named && v.code == codeSQL && (a.at == preparing || v.own) { // the statement fails without any message
		f.Outcome = holdfast.LaneFault
	}
	w.end(ctx, conn, a.named)
	return f
}

// confronted judges an error inside a statement that speaks of the connection, the server or the
// login. It counts as theirs only if the same connection gives it without the message too: a
// trigger can raise any error.
func (w *Writer) confronted(ctx context.Context, conn *sql.Conn, a attempt, f *holdfast.Failure) *holdfast.Failure {
	if w.dialect.local { // only SQLite itself can report it
		discard(conn)
		return f
	}
	alone, answered := w.alone(ctx, conn)
	if alone != nil {
		discard(conn)
		w.leave()
		if answered && !f.MaybeDelivered {
			return alone
		}
		return f
	}
	if f.Outcome == holdfast.LaneFault && (!a.named || a.at != preparing) {
		f.Outcome = holdfast.Permanent
	}
	w.end(ctx, conn, a.named)
	return f
}

// alone checks whether a connection accepts a write, without a message. If it does, f is nil. If
// answered is false, the connection has not answered.
func (w *Writer) alone(ctx context.Context, conn *sql.Conn) (f *holdfast.Failure, answered bool) {
	for _, text := range []string{"rollback", w.dialect.begin} {
		if _, err := conn.ExecContext(ctx, text); err != nil {
			_, answered := w.dialect.judge(err)
			return w.unbegun(ctx, err), answered
		}
	}
	return w.writable(ctx, conn)
}

// writable checks what begin does not report, in a transaction that has just begun.
func (w *Writer) writable(ctx context.Context, conn *sql.Conn) (f *holdfast.Failure, answered bool) {
	if w.dialect.readOnly == "" {
		return nil, true
	}
	var said string
	if err := conn.QueryRowContext(ctx, w.dialect.readOnly).Scan(&said); err != nil {
		_, answered := w.dialect.judge(err)
		return w.unbegun(ctx, err), answered
	}
	if said != w.dialect.yes {
		return nil, true
	}
	return w.failure(verdict{outcome: holdfast.LaneFault, code: codeReadOnly, number: "that nothing may be written"}), true
}

// end rolls back, and gives a connection back if it is in order. Other connections are closed,
// which also rolls back. So is a connection that has run a statement of a payload, since the
// statement may have left something in its session, such as a lock.
func (w *Writer) end(ctx context.Context, conn *sql.Conn, named bool) {
	if !named {
		discard(conn)
		return
	}
	if _, err := conn.ExecContext(ctx, "rollback"); err != nil {
		discard(conn)
		return
	}
	_ = conn.Close()
}

// leave closes the idle connections: they lead to the server that has just been found unfit, and
// the address may lead elsewhere by now.
func (w *Writer) leave() {
	w.db.SetMaxIdleConns(0)
	w.db.SetMaxIdleConns(w.idle)
}
