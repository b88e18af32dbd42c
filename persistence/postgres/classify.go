package postgres

import (
	"context"
	"crypto/tls"
	"database/sql"
	"database/sql/driver"
	"errors"
	"io"
	"net"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/fsmgen/fsmgen/engine"
	"github.com/fsmgen/fsmgen/persistence"
)

// Classify reads what the server said (https://www.postgresql.org/docs/current/errcodes-appendix.html)
// and, where it could not say anything any more, what the driver saw.
func (dialect) Classify(err error, journal string) engine.Class {
	var connect *pgconn.ConnectError
	var pg *pgconn.PgError
	switch {
	case errors.As(err, &connect):
		return classifyConnect(connect)
	case errors.As(err, &pg):
		return classifyCode(pg, journal)
	}
	return classifyDriver(err)
}

// classifyConnect: no connection, so nothing was sent. A refused login stays refused.
func classifyConnect(err *pgconn.ConnectError) engine.Class {
	var pg *pgconn.PgError
	if errors.As(err, &pg) && (strings.HasPrefix(pg.Code, "28") || strings.HasPrefix(pg.Code, "3D") || strings.HasPrefix(pg.Code, "42")) {
		return engine.ClassFatal
	}
	return engine.ClassRetryable
}

// classes are the codes that mean something by themselves.
var classes = map[string]engine.Class{
	"40001": engine.ClassRetryable, // serialization_failure
	"40P01": engine.ClassRetryable, // deadlock_detected
	"55P03": engine.ClassRetryable, // lock_not_available
	"57014": engine.ClassRetryable, // query_canceled: statement_timeout, or somebody's pg_cancel_backend
	"53300": engine.ClassRetryable, // too_many_connections
	"57P03": engine.ClassRetryable, // cannot_connect_now
	"25006": engine.ClassRetryable, // read_only_sql_transaction: the server became a standby
	"25P03": engine.ClassRetryable, // idle_in_transaction_session_timeout
	"26000": engine.ClassRetryable, // invalid_sql_statement_name: somebody dropped the prepared statement
	"57P01": engine.ClassUnknown,   // admin_shutdown
	"57P02": engine.ClassUnknown,   // crash_shutdown
	"57P04": engine.ClassUnknown,   // database_dropped
	"57P05": engine.ClassUnknown,   // idle_session_timeout
	"25P04": engine.ClassUnknown,   // transaction_timeout
	"40003": engine.ClassUnknown,   // statement_completion_unknown
}

func classifyCode(pg *pgconn.PgError, journal string) engine.Class {
	if class, ok := classes[pg.Code]; ok {
		return class
	}
	switch {
	case pg.Code == "23505":
		return classifyUnique(pg, journal)
	case strings.HasPrefix(pg.Code, "23"):
		return engine.ClassConstraint
	case strings.HasPrefix(pg.Code, "08"): // connection exceptions, also those of poolers
		return engine.ClassUnknown
	case pg.Code == "0A000" && strings.Contains(pg.Routine, "RevalidateCachedQuery"):
		return engine.ClassRetryable // the table was altered under a prepared statement
	}
	return engine.ClassFatal
}

// classifyUnique tells the journal's unique indexes apart by their columns, which the
// server names in every language, whoever made the index.
func classifyUnique(pg *pgconn.PgError, journal string) engine.Class {
	schema, table := splitTable(journal)
	if pg.TableName != table || (schema != "" && pg.SchemaName != schema) {
		return engine.ClassConstraint
	}
	_, columns, _ := strings.Cut(pg.Detail, "(")
	switch {
	case strings.HasPrefix(columns, "machine, entity_id, key)"), columns == "" && strings.HasSuffix(pg.ConstraintName, "_key"):
		return engine.ClassDuplicateKey
	case strings.HasPrefix(columns, "machine, entity_id, version)"), columns == "" && strings.HasSuffix(pg.ConstraintName, "_version"):
		return engine.ClassVersionTaken
	}
	return engine.ClassConstraint
}

// Told reports whether the server said it, and not only why it lets nobody in.
func (dialect) Told(err error) bool {
	var connect *pgconn.ConnectError
	var pg *pgconn.PgError
	return errors.As(err, &pg) && !errors.As(err, &connect)
}

// LockWait reports whether a statement has given up waiting for a lock.
func (dialect) LockWait(err error) bool { return waited(err) }

// Lost reports whether a savepoint is gone: 25P01 says that no transaction is open.
func (dialect) Lost(err error) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && (pg.Code == "25P01" || pg.Code == "3B001")
}

// ignored is what the server says to every statement after an error.
const ignored = "25P02"

// hintIgnored: whatever comes after an error, up to the ROLLBACK, the server ignores.
const hintIgnored = "a statement of the transaction had failed and its error was ignored, after which the server takes nothing but ROLLBACK; nothing was applied"

// Inside: a transaction that may not write, or that has failed, stays so however often it
// is begun. Outside of one a server that does not write has become a standby, and the next
// connection finds the one that took over.
func (dialect) Inside(err error) *engine.Fault {
	var pg *pgconn.PgError
	if !errors.As(err, &pg) {
		return nil
	}
	switch pg.Code {
	case ignored:
		return &engine.Fault{Class: engine.ClassFatal, Err: err, Hint: hintIgnored}
	case "25006":
		return &engine.Fault{Class: engine.ClassFatal, Err: err, Hint: "the transaction is read-only; begin one that may write (on a standby: on the server that took over)"}
	}
	return nil
}

// failure is where a connection keeps the last error that the server reported on it.
const failure = "fsmgen.failure"

// note keeps an error of the server for Watch, and says as the driver does by itself
// whether the connection may be used on.
func note(c *pgconn.PgConn, e *pgconn.PgError) bool {
	if e.Code != ignored {
		c.CustomData()[failure] = e
	}
	return !strings.EqualFold(e.Severity, "FATAL")
}

// Watch: COMMIT of a transaction in which a statement failed is a ROLLBACK, and does not
// say which statement that was.
func (d dialect) Watch(dc any) persistence.Watch {
	own, ok := dc.(*stdlib.Conn)
	if !ok {
		return persistence.Watch{}
	}
	conn := own.Conn().PgConn()
	delete(conn.CustomData(), failure)
	return persistence.Watch{
		Failed: func() error {
			if conn.TxStatus() != 'E' {
				return nil
			}
			f := &engine.Fault{Class: engine.ClassFatal, Err: pgx.ErrTxCommitRollback, Hint: hintIgnored}
			if e, ok := conn.CustomData()[failure].(*pgconn.PgError); ok {
				f.Err = e
				if d.Classify(e, "") == engine.ClassRetryable {
					f.Class = engine.ClassRetryable
				}
			}
			return f
		},
		Done: func() {},
	}
}

// Collided: two migrations that create the same at once meet in the catalogue.
func (dialect) Collided(err error) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && (pg.Code == "42P07" || pg.Code == "42710" || pg.Code == "23505" && pg.SchemaName == "pg_catalog")
}

// classifyDriver reads errors that are not the server's.
func classifyDriver(err error) engine.Class {
	var dial *net.OpError
	switch {
	case err == nil:
		return engine.ClassFatal
	case pgconn.SafeToRetry(err), errors.Is(err, pgx.ErrTxCommitRollback), errors.Is(err, sql.ErrTxDone),
		errors.As(err, &dial) && dial.Op == "dial":
		return engine.ClassRetryable
	case brokeUnderway(err):
		return engine.ClassUnknown
	}
	return engine.ClassFatal
}

// brokeUnderway reports whether the connection, or the wait for its answer, ended
// when something may already have been sent.
func brokeUnderway(err error) bool {
	var network net.Error
	var sent interface{ SafeToRetry() bool } // the driver's own, after sending
	var record tls.RecordHeaderError
	var alert tls.AlertError
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) ||
		errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed) ||
		errors.Is(err, driver.ErrBadConn) || errors.Is(err, sql.ErrConnDone) || errors.Is(err, pgconn.ErrConnClosed) ||
		errors.As(err, &network) || errors.As(err, &sent) || errors.As(err, &record) || errors.As(err, &alert)
}
