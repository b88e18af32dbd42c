package sqlite

import (
	"errors"

	"github.com/fsmgen/fsmgen/engine"
	"github.com/fsmgen/fsmgen/persistence"
)

var errEnded = errors.New("no transaction is open any more")

// Watch: an error can end a transaction (a trigger's RAISE(ROLLBACK), a full disk), and
// what comes after would commit by itself. On the store's own connections it is kept from
// that.
func (dialect) Watch(dc any) persistence.Watch {
	s, err := sessionOf(dc)
	if err != nil || s.autoCommit == nil {
		return persistence.Watch{}
	}
	hint := "an error that ended the transaction was ignored inside of it; "
	if own, ok := dc.(*conn); ok {
		own.hold()
		hint += "nothing was applied"
	} else {
		hint += "what ran after that error may have been committed by itself"
	}
	return persistence.Watch{
		Failed: func() error {
			s.held = false
			if s.ended() {
				return &engine.Fault{Class: engine.ClassFatal, Err: errEnded, Hint: hint}
			}
			return nil
		},
		Done: func() { s.held = false },
	}
}

// hold lets nothing commit on the connection. The hook stays once it is there, since the
// driver would keep each one until the connection closes.
func (c *conn) hold() {
	if !c.hooked {
		c.hooked = true
		c.RegisterCommitHook(func() int {
			if c.session.held {
				return 1 // makes a ROLLBACK of it
			}
			return 0
		})
	}
	c.session.held = true
}
