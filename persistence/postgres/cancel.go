package postgres

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgconn/ctxwatch"
)

// grace is how long a cancelled call waits for the server to say how it ended. On a
// network that answers it takes two round trips.
const grace = 500 * time.Millisecond

// canceller ends a statement whose context ended: it asks the server to cancel, and
// waits for the answer. Closing the connection instead, as the driver does by itself,
// leaves a statement behind that waits for a lock and is applied when nobody expects
// it any more.
type canceller struct {
	conn  *pgconn.PgConn
	asked *atomic.Bool  // that a request was sent
	over  chan struct{} // closed when the call has returned
}

// newCanceller is called while the connection is made: later its data belong to the call
// that uses it, beside which HandleCancel runs.
func newCanceller(conn *pgconn.PgConn) ctxwatch.Handler {
	asked := new(atomic.Bool)
	conn.CustomData()[cancelled] = asked
	return &canceller{conn: conn, asked: asked}
}

// HandleCancel runs when the context has ended, beside the call that waits.
func (c *canceller) HandleCancel(ended context.Context) {
	deadline := time.Now().Add(grace)
	_ = c.conn.Conn().SetDeadline(deadline) // where this fails the connection is gone already
	ctx, cancel := context.WithDeadline(context.WithoutCancel(ended), deadline)
	c.asked.Store(true)
	over := make(chan struct{})
	c.over = over
	_ = c.conn.CancelRequest(ctx) // where this fails the deadline ends the call
	go func() {
		defer cancel()
		c.insist(ctx, over)
	}()
}

// insist repeats the request until the call is over: one that overtakes the statement it
// is meant for finds nothing to cancel.
func (c *canceller) insist(ctx context.Context, over <-chan struct{}) {
	for wait := 10 * time.Millisecond; ; wait *= 2 {
		select {
		case <-over:
			return
		case <-ctx.Done():
			return
		case <-time.After(wait):
			_ = c.conn.CancelRequest(ctx)
		}
	}
}

// HandleUnwatchAfterCancel runs when the call has returned and HandleCancel is done.
func (c *canceller) HandleUnwatchAfterCancel() {
	close(c.over)
	_ = c.conn.Conn().SetDeadline(time.Time{})
}

// cancelled marks a connection that was sent a cancel request: a late one could hit
// whoever uses the connection next.
const cancelled = "fsmgen.cancelled"

func wasCancelled(conn *pgconn.PgConn) bool {
	asked, ok := conn.CustomData()[cancelled].(*atomic.Bool)
	return ok && asked.Load()
}
