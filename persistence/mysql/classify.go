package mysql

import (
	"context"
	"database/sql"
	sqldriver "database/sql/driver"
	"errors"
	"net"
	"strings"

	driver "github.com/go-sql-driver/mysql"

	"github.com/fsmgen/fsmgen/engine"
)

// Error numbers of the server, by what they mean for a call
// (https://mariadb.com/docs/server/reference/error-codes).
const (
	errTooManyConns     = 1040
	errNotReady         = 1047 // a Galera node without a quorum
	errShutdown         = 1053
	errDuplicate        = 1062
	errCommit           = 1180 // COMMIT itself failed
	errChanged          = 1020 // the row is newer than the snapshot
	errLockWait         = 1205
	errDeadlock         = 1213
	errInterrupted      = 1317 // KILL QUERY
	errTooManyStmts     = 1461
	errRePrepare        = 1615
	errUnknownStmt      = 1243
	errUserConns        = 1203
	errConnKilled       = 1927
	errStatementTime    = 1969 // max_statement_time
	errExecutionTime    = 3024 // MySQL's limit for SELECT
	errNowait           = 3572
	errNoSavepoint      = 1305 // ER_SP_DOES_NOT_EXIST
	errForeignKey       = 1452
	errForeignKeyParent = 1451
	errNoDefault        = 1364 // a column of the user's own that the definition does not know
	errCheckMaria       = 4025
	errCheckMySQL       = 3819
)

// Classify says what an error means for the statement it came from.
func (dialect) Classify(err error, _ string) engine.Class { return classify(err) }

func classify(err error) engine.Class {
	var e *driver.MySQLError
	if errors.As(err, &e) {
		return classifyNumber(e)
	}
	var op *net.OpError
	switch {
	case errors.As(err, &op) && op.Op == "dial":
		return engine.ClassRetryable
	case op != nil, errors.Is(err, driver.ErrInvalidConn), errors.Is(err, sqldriver.ErrBadConn), errors.Is(err, sql.ErrConnDone),
		errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded), errors.Is(err, sql.ErrTxDone),
		errors.Is(err, driver.ErrMalformPkt), errors.Is(err, driver.ErrPktSync), errors.Is(err, driver.ErrPktSyncMul), errors.Is(err, driver.ErrBusyBuffer):
		return engine.ClassUnknown
	}
	return engine.ClassFatal
}

func classifyNumber(e *driver.MySQLError) engine.Class {
	switch e.Number {
	case errDeadlock, errLockWait, errChanged, errInterrupted, errStatementTime, errExecutionTime, errNowait,
		errTooManyConns, errUserConns, errNotReady, errTooManyStmts, errRePrepare, errUnknownStmt:
		return engine.ClassRetryable
	case errDuplicate:
		return classifyDuplicate(e.Message)
	case errCheckMaria, errCheckMySQL, errForeignKey, errForeignKeyParent, errNoDefault:
		return engine.ClassConstraint
	case errShutdown, errConnKilled, errCommit:
		return engine.ClassUnknown
	}
	return engine.ClassFatal
}

// Told reports whether the server said it.
func (dialect) Told(err error) bool {
	var e *driver.MySQLError
	return errors.As(err, &e)
}

// LockWait reports whether a statement has given up waiting for a lock.
func (dialect) LockWait(err error) bool { return held(err) }

// Lost reports whether a savepoint is gone.
func (dialect) Lost(err error) bool {
	var e *driver.MySQLError
	return errors.As(err, &e) && e.Number == errNoSavepoint
}

// classifyDuplicate reads which unique index refused: "… for key 'name'" on MariaDB,
// "… for key 'table.name'" on MySQL. The value before it can hold any text.
func classifyDuplicate(message string) engine.Class {
	at := strings.LastIndex(message, " for key '")
	if at < 0 {
		return engine.ClassConstraint
	}
	name := strings.TrimSuffix(message[at+len(" for key '"):], "'")
	if dot := strings.LastIndexByte(name, '.'); dot >= 0 {
		name = name[dot+1:]
	}
	switch name {
	case keyIndex:
		return engine.ClassDuplicateKey
	case versionIndex:
		return engine.ClassVersionTaken
	}
	return engine.ClassConstraint
}

// committing says what an error means for a statement that carries the commit: an
// interruption can come after the commit was done.
func committing(err error) engine.Class {
	var e *driver.MySQLError
	if errors.As(err, &e) {
		switch e.Number {
		case errInterrupted, errStatementTime, errExecutionTime:
			return engine.ClassUnknown
		}
	}
	return classify(err)
}

// severed reports whether an error means that the connection is no longer usable.
func severed(err error) bool {
	var e *driver.MySQLError
	return !errors.As(err, &e) && classify(err) == engine.ClassUnknown
}

// noWait makes a statement fail where another transaction holds its row (MariaDB).
const noWait = "SET STATEMENT innodb_lock_wait_timeout=0 FOR "

// noWaitTable does so where a table is locked as a whole.
const noWaitTable = "SET STATEMENT lock_wait_timeout=0 FOR "

func held(err error) bool {
	var e *driver.MySQLError
	return errors.As(err, &e) && (e.Number == errLockWait || e.Number == errNowait)
}
