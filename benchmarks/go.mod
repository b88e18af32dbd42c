module github.com/fsmgen/fsmgen/benchmarks

go 1.26.0

replace github.com/fsmgen/fsmgen => ../

require (
	github.com/fsmgen/fsmgen v0.0.0
	github.com/jmoiron/sqlx v1.4.0
	github.com/looplab/fsm v1.0.3
	github.com/qmuntal/stateless v1.7.2
	gorm.io/driver/mysql v1.6.0
	gorm.io/driver/postgres v1.6.3
	gorm.io/driver/sqlite v1.6.0
	gorm.io/gorm v1.31.2
	gorm.io/plugin/optimisticlock v1.1.3
)

require (
	filippo.io/edwards25519 v1.2.0 // indirect
	github.com/expr-lang/expr v1.17.8 // indirect
	github.com/go-sql-driver/mysql v1.10.1 // indirect
	github.com/jackc/pgpassfile v1.0.0 // indirect
	github.com/jackc/pgservicefile v0.0.0-20240606120523-5a60cdf6a761 // indirect
	github.com/jackc/pgx/v5 v5.13.0 // indirect
	github.com/jackc/puddle/v2 v2.2.3 // indirect
	github.com/jinzhu/inflection v1.0.0 // indirect
	github.com/jinzhu/now v1.1.5 // indirect
	github.com/mattn/go-sqlite3 v1.14.53 // indirect
	github.com/shopspring/decimal v1.4.0 // indirect
	golang.org/x/sync v0.25.0 // indirect
	golang.org/x/text v0.44.0 // indirect
	gopkg.in/yaml.v3 v3.0.1 // indirect
)
