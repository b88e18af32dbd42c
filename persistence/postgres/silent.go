package postgres

import (
	"context"
	"net"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
)

// hearing keeps connections from being waited on for ever: on a network that died nothing
// says that no answer will come, and where the caller's context has no end nobody else
// asks.
func (o *options) hearing(config *pgx.ConnConfig) {
	patience, dial := o.patience(config), config.DialFunc
	if patience == 0 {
		return
	}
	config.DialFunc = func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := dial(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		return &hearing{Conn: c, patience: patience}, nil
	}
}

// patience is how long the server may be silent: as long as it may take for a statement,
// and the time that a call waits for other things. 0: for ever, since the server's setting
// is not known.
func (o *options) patience(config *pgx.ConnConfig) time.Duration {
	if strings.Contains(config.RuntimeParams["options"], "statement_timeout") {
		return 0
	}
	statement := config.RuntimeParams["statement_timeout"]
	limit, err := time.ParseDuration(strings.ReplaceAll(statement, "min", "m"))
	if n, plain := strconv.Atoi(statement); plain == nil { // in milliseconds
		limit, err = time.Duration(n)*time.Millisecond, nil
	}
	if err != nil || limit <= 0 {
		return 0
	}
	return limit + o.wait
}

// hearing is a connection that is given up when nothing comes, or goes, for as long as
// patience. Deadlines that the driver sets come first.
type hearing struct {
	net.Conn
	patience time.Duration

	mu          sync.Mutex
	read, write bool // the driver has set a deadline
}

// Read reads what comes within the deadline.
func (c *hearing) Read(b []byte) (int, error) {
	c.bound(&c.read, c.Conn.SetReadDeadline)
	return c.Conn.Read(b) //nolint:wrapcheck // it is the connection
}

// Write writes within the deadline.
func (c *hearing) Write(b []byte) (int, error) {
	c.bound(&c.write, c.Conn.SetWriteDeadline)
	return c.Conn.Write(b) //nolint:wrapcheck // it is the connection
}

// bound sets a deadline of ours where there is none of the driver's.
func (c *hearing) bound(set *bool, deadline func(time.Time) error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !*set {
		_ = deadline(time.Now().Add(c.patience)) // a connection that takes none is broken, which what follows says
	}
}

// SetDeadline is the driver's.
func (c *hearing) SetDeadline(t time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.read, c.write = !t.IsZero(), !t.IsZero()
	return c.Conn.SetDeadline(t) //nolint:wrapcheck // it is the connection
}

// SetReadDeadline is the driver's.
func (c *hearing) SetReadDeadline(t time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.read = !t.IsZero()
	return c.Conn.SetReadDeadline(t) //nolint:wrapcheck // it is the connection
}

// SetWriteDeadline is the driver's.
func (c *hearing) SetWriteDeadline(t time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.write = !t.IsZero()
	return c.Conn.SetWriteDeadline(t) //nolint:wrapcheck // it is the connection
}
