// Package recorder wraps a database/sql driver so that tests see every statement that
// reaches it, and can make one fail: before it is run, or after it was.
//
// It passes on what the drivers of PostgreSQL and MySQL offer, and nothing else.
package recorder

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
)

// Event is one thing that reached the driver.
type Event struct {
	// Op is "exec", "query", "prepare", "begin", "commit" or "rollback".
	Op string
	// Text is the statement; empty for commit and rollback.
	Text string
	// Conn numbers the connections from 1.
	Conn int
	// Err is what the driver, or the fault, answered.
	Err error
}

// String is the statement, or the operation where there is none.
func (e Event) String() string {
	if e.Text == "" {
		return strings.ToUpper(e.Op)
	}
	return e.Text
}

// Fault makes a statement fail. Before is called before the driver sees it, After
// when the driver has run it without error; an error of theirs is the answer. Either
// may be nil, and either may block, to hold a statement in its place.
type Fault struct {
	Before, After func(Event) error
}

// Log is what was recorded, in the order of the calls.
type Log struct {
	mu     sync.Mutex
	events []Event
	fault  Fault
	conns  int
}

// Reset forgets what was recorded.
func (l *Log) Reset() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.events = nil
}

// Events returns what was recorded since Reset.
func (l *Log) Events() []Event {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.events)
}

// Texts returns the statements since Reset; BEGIN, COMMIT and ROLLBACK as such.
func (l *Log) Texts() []string {
	var out []string
	for _, e := range l.Events() {
		if e.Op != "prepare" {
			out = append(out, e.String())
		}
	}
	return out
}

// Inject sets the fault; the zero Fault ends it.
func (l *Log) Inject(f Fault) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.fault = f
}

// Once calls f for the first event that fits and answers nil for all others.
func Once(fits func(Event) bool, f func(Event) error) func(Event) error {
	var once sync.Once
	return func(e Event) (err error) {
		if fits(e) {
			once.Do(func() { err = f(e) })
		}
		return err
	}
}

// run records one operation and lets the fault have its say.
func (l *Log) run(e Event, do func() error) error {
	l.mu.Lock()
	fault := l.fault
	at := len(l.events)
	l.events = append(l.events, e)
	l.mu.Unlock()
	err := func() error {
		if fault.Before != nil {
			if err := fault.Before(e); err != nil {
				return err
			}
		}
		if err := do(); err != nil {
			return err
		}
		if fault.After != nil {
			return fault.After(e)
		}
		return nil
	}()
	l.mu.Lock()
	defer l.mu.Unlock()
	if at >= len(l.events) || l.events[at].Conn != e.Conn || l.events[at].Text != e.Text {
		return err // Reset came in between
	}
	if errors.Is(err, driver.ErrSkip) { // nothing ran: the driver wants it prepared first
		l.events = slices.Delete(l.events, at, at+1)
		return err
	}
	l.events[at].Err = err
	return err
}

// Connector records the connections that another connector makes. Open a pool over it
// with sql.OpenDB.
func Connector(inner driver.Connector, log *Log) driver.Connector { return &connector{inner, log} }

// FromDriver is a Connector for drivers that only take a DSN.
func FromDriver(d driver.Driver, dsn string, log *Log) (driver.Connector, error) {
	if d, ok := d.(driver.DriverContext); ok {
		c, err := d.OpenConnector(dsn)
		if err != nil {
			return nil, err
		}
		return Connector(c, log), nil
	}
	return Connector(plain{d, dsn}, log), nil
}

// plain is a connector over a driver without one.
type plain struct {
	d   driver.Driver
	dsn string
}

func (p plain) Connect(context.Context) (driver.Conn, error) { return p.d.Open(p.dsn) }
func (p plain) Driver() driver.Driver                        { return p.d }

type connector struct {
	inner driver.Connector
	log   *Log
}

func (c *connector) Driver() driver.Driver { return c.inner.Driver() }

func (c *connector) Connect(ctx context.Context) (driver.Conn, error) {
	inner, err := c.inner.Connect(ctx)
	if err != nil {
		return nil, err
	}
	c.log.mu.Lock()
	defer c.log.mu.Unlock()
	c.log.conns++
	return &conn{Conn: inner, log: c.log, n: c.log.conns}, nil
}

// missing says that the wrapped driver lacks what database/sql was promised.
func missing(inner any, what string) error {
	return fmt.Errorf("recorder: the driver's %T has no %s", inner, what)
}
