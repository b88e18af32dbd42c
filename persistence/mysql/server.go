package mysql

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	driver "github.com/go-sql-driver/mysql"
	"github.com/jmoiron/sqlx"
)

// server is what answers: the two databases of this protocol differ in what they can.
type server struct {
	maria   bool
	version [3]int
	either  bool // not asked: text that both understand
}

// compound reports whether whole programs can be sent, and prepared, as one statement.
func (s server) compound() bool { return s.maria && s.atLeast(10, 6, 2) }

func (s server) atLeast(v ...int) bool { return slices.Compare(s.version[:], v) >= 0 }

// detect asks the server behind a DSN for its version, on a connection of its own.
func detect(ctx context.Context, cfg *driver.Config, wait time.Duration) (server, error) {
	db, err := pool(cfg)
	if err != nil {
		return server{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	s, err := versionOf(ctx, db)
	return s, errors.Join(err, db.Close())
}

func versionOf(ctx context.Context, db *sqlx.DB) (server, error) {
	var version string
	if err := db.GetContext(ctx, &version, "SELECT VERSION()"); err != nil {
		return server{}, err
	}
	return parseVersion(version)
}

// parseVersion reads "10.11.19-MariaDB-log", "5.5.5-10.4.1-MariaDB" or "8.0.36".
func parseVersion(version string) (server, error) {
	s := server{maria: strings.Contains(version, "MariaDB")}
	text := version
	if s.maria {
		text = strings.TrimPrefix(text, "5.5.5-") // what old replicas need to hear
	}
	text, _, _ = strings.Cut(text, "-")
	for i, part := range strings.SplitN(text, ".", 3) {
		n, err := strconv.Atoi(part)
		if err != nil {
			return s, fmt.Errorf("the server's version %q is not understood", version)
		}
		s.version[i] = n
	}
	switch {
	case s.maria && !s.atLeast(10, 3):
		return s, fmt.Errorf("the server is MariaDB %s, want 10.3 or later (10.6 is tested for)", version)
	case !s.maria && !s.atLeast(8, 0, 17):
		return s, fmt.Errorf("the server is MySQL %s, want 8.0.17 or later: earlier ones have no collation that compares by bytes", version)
	}
	return s, nil
}

// verifySession refuses sessions in which nothing would be committed, or values would not
// come back as they were written.
func verifySession(ctx context.Context, db *sqlx.DB, wait time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	return errors.Join(verifyCommit(ctx, db), verifyMode(ctx, db), verifyCharset(ctx, db), verifyTimes(ctx, db), verifyBinlog(ctx, db))
}

// verifyCommit: where a statement does not commit by itself, one that was answered would
// be rolled back with its connection.
func verifyCommit(ctx context.Context, db *sqlx.DB) error {
	var on bool
	if err := db.GetContext(ctx, &on, "SELECT @@autocommit"); err != nil {
		return err
	}
	if !on {
		return errors.New("the session's autocommit is off, so what is reported as applied would never be committed: say autocommit=1 in the DSN")
	}
	var kind string
	if err := db.GetContext(ctx, &kind, "SELECT @@completion_type"); err != nil {
		return err
	}
	if kind != "NO_CHAIN" {
		return fmt.Errorf("the session's completion_type is %s, so a COMMIT opens the next transaction, or ends the session: say completion_type='NO_CHAIN' in the DSN", kind)
	}
	return nil
}

func verifyMode(ctx context.Context, db *sqlx.DB) error {
	var mode string
	if err := db.GetContext(ctx, &mode, "SELECT @@sql_mode"); err != nil {
		return err
	}
	modes := strings.Split(mode, ",")
	for _, bad := range []string{"ORACLE", "EMPTY_STRING_IS_NULL"} {
		if slices.Contains(modes, bad) {
			return fmt.Errorf("sql_mode has %s, which turns '' into NULL: take it out, for example with sql_mode='STRICT_TRANS_TABLES' in the DSN", bad)
		}
	}
	if !slices.Contains(modes, "STRICT_TRANS_TABLES") && !slices.Contains(modes, "STRICT_ALL_TABLES") {
		return errors.New("sql_mode is not strict, so values that do not fit would be cut without an error: add sql_mode='STRICT_TRANS_TABLES' to the DSN")
	}
	return nil
}

func verifyCharset(ctx context.Context, db *sqlx.DB) error {
	var client, connection, results *string
	row := db.QueryRowContext(ctx, "SELECT @@character_set_client, @@character_set_connection, @@character_set_results")
	if err := row.Scan(&client, &connection, &results); err != nil {
		return err
	}
	for _, name := range []*string{client, connection, results} {
		if name != nil && *name != "utf8mb4" {
			return fmt.Errorf("the session's character set is %s, so text would be converted: add charset=utf8mb4 to the DSN", *name)
		}
	}
	return nil
}

// verifyTimes sends a time and reads one: both must be taken for UTC, to the
// microsecond.
func verifyTimes(ctx context.Context, db *sqlx.DB) error {
	const text = "2001-02-03 04:05:06.789012"
	at := time.Date(2001, 2, 3, 4, 5, 6, 789012000, time.UTC)
	var sent string
	var read any
	row := db.QueryRowContext(ctx, "SELECT CAST(? AS CHAR), CAST('"+text+"' AS DATETIME(6))", at)
	if err := row.Scan(&sent, &read); err != nil {
		return err
	}
	if sent != text {
		return fmt.Errorf("the driver sends the time %s as %s: use loc=UTC, and no timeTruncate, in the DSN", text, sent)
	}
	got, ok := read.(time.Time)
	if !ok {
		return errors.New("the driver gives times as text: add parseTime=true&loc=UTC to the DSN")
	}
	if !got.Equal(at) {
		return fmt.Errorf("the driver reads the time %s as %s: add loc=UTC to the DSN", text, got)
	}
	return nil
}

// verifyBinlog: statement-based logging cannot log what READ COMMITTED writes.
func verifyBinlog(ctx context.Context, db *sqlx.DB) error {
	var on bool
	var format string
	if err := db.QueryRowContext(ctx, "SELECT @@log_bin, @@binlog_format").Scan(&on, &format); err != nil {
		return err
	}
	if on && format == "STATEMENT" {
		return errors.New("the server logs statements (binlog_format=STATEMENT), which excludes READ COMMITTED: set binlog_format to MIXED or ROW")
	}
	return nil
}
