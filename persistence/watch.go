package persistence

import (
	"github.com/jmoiron/sqlx"
)

// watched is a dialect's watch over the transaction that is open on a connection.
type watched struct {
	conn *sqlx.Conn
	w    Watch
}

func (s *Store) watch(conn *sqlx.Conn) watched {
	out := watched{conn: conn}
	if d, ok := s.d.(Watcher); ok {
		_ = conn.Raw(func(dc any) error { // where that fails, so does what comes next
			out.w = d.Watch(dc)
			return nil
		})
	}
	return out
}

// failed is what the watch says before COMMIT.
func (w watched) failed() error {
	if w.w.Failed == nil {
		return nil
	}
	var failed error
	if err := w.conn.Raw(func(any) error {
		failed = w.w.Failed()
		return nil
	}); err != nil {
		return nil //nolint:nilerr // COMMIT will say it
	}
	return failed
}

func (w watched) done() {
	if w.w.Done == nil {
		return
	}
	_ = w.conn.Raw(func(any) error { // a connection that is gone needs no more of it
		w.w.Done()
		return nil
	})
}
