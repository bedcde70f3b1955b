// pgx: the statements of ../drivers.py in its modes of executing them, batches, COPY, rows by
// name. See ../checks.py, which says how the programs are run.
package main

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"sort"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// As ../drivers.py prints it.
type drivers struct {
	Table      string           `json:"table"`
	Insert     string           `json:"insert"`
	Rows       [][]any          `json:"rows"`
	Statements map[string][]any `json:"statements"`
}

var ctx = context.Background()

// value is what Go would have instead of JSON's.
func value(v any) any {
	switch v := v.(type) {
	case json.Number:
		if n, err := v.Int64(); err == nil {
			return n
		}
		f, _ := v.Float64()
		return f
	case map[string]any:
		bytes, _ := hex.DecodeString(v["bytes"].(string))
		return bytes
	case []any:
		if _, text := v[0].(string); text {
			var all []string
			for _, one := range v {
				all = append(all, one.(string))
			}
			return all
		}
		var all []int64
		for _, one := range v {
			all = append(all, value(one).(int64))
		}
		return all
	}
	return v
}

func values(row []any) []any {
	all := []any{}
	for _, v := range row {
		all = append(all, value(v))
	}
	return all
}

type check struct {
	name string
	run  func(pgx.Tx) (any, error)
}

// told gives all that a client sees of rows.
func told(rows pgx.Rows, err error) (any, error) {
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	out := []any{}
	for _, f := range rows.FieldDescriptions() {
		out = append(out, []any{f.Name, f.DataTypeOID, f.TypeModifier})
	}
	for rows.Next() {
		found, err := rows.Values()
		if err != nil {
			return nil, err
		}
		line := []any{}
		for _, v := range found {
			line = append(line, fmt.Sprintf("%T %v", v, v))
		}
		out = append(out, line)
	}
	return append(out, rows.CommandTag().String()), rows.Err()
}

var modes = map[string]pgx.QueryExecMode{
	"":          pgx.QueryExecModeCacheStatement,
	"describe_": pgx.QueryExecModeCacheDescribe,
	"exec_":     pgx.QueryExecModeDescribeExec,
}

func checks(given drivers) []check {
	var all []check
	for name, statement := range given.Statements {
		for mode, how := range modes {
			sql, parameters := statement[0].(string), values(statement[1].([]any))
			all = append(all, check{mode + name, func(tx pgx.Tx) (any, error) {
				return told(tx.Query(ctx, sql, append([]any{how}, parameters...)...))
			}})
		}
	}
	all = append(all, check{"batch", func(tx pgx.Tx) (any, error) {
		batch := &pgx.Batch{}
		batch.Queue("UPDATE item SET name = $1 WHERE id = $2", "batched", 1)
		batch.Queue("SELECT name, price::text FROM item WHERE n > $1 ORDER BY id", 3000)
		results := tx.SendBatch(ctx, batch)
		defer results.Close()
		if _, err := results.Exec(); err != nil {
			return nil, err
		}
		return told(results.Query())
	}}, check{"copy_from", func(tx pgx.Tx) (any, error) {
		rows := [][]any{{int32(70), "copied", int32(7)}, {int32(71), "too", nil}}
		names := []string{"id", "name", "n"}
		if _, err := tx.CopyFrom(ctx, pgx.Identifier{"item"}, names, pgx.CopyFromRows(rows)); err != nil {
			return nil, err
		}
		return told(tx.Query(ctx, "SELECT name, n FROM item WHERE id >= 70 ORDER BY id"))
	}}, check{"rows_by_name", func(tx pgx.Tx) (any, error) {
		rows, err := tx.Query(ctx, "SELECT id, name FROM item WHERE name LIKE $1 ORDER BY id", "%a%")
		if err != nil {
			return nil, err
		}
		return pgx.CollectRows(rows, pgx.RowToMap)
	}}, check{"nested_transaction", func(tx pgx.Tx) (any, error) {
		inner, err := tx.Begin(ctx)
		if err != nil {
			return nil, err
		}
		_, err = inner.Exec(ctx, "INSERT INTO item (id, name) VALUES (1, $1)", "x")
		var failure *pgconn.PgError
		if !errors.As(err, &failure) {
			return nil, err
		}
		_ = inner.Rollback(ctx)
		var count int
		err = tx.QueryRow(ctx, "SELECT count(*) FROM item WHERE name = $1", "plain").Scan(&count)
		return []any{failure.Code, failure.ConstraintName, count}, err
	}})
	sort.Slice(all, func(a, b int) bool { return all[a].name < all[b].name })
	return all
}

func tell(name string, run func() (any, error)) {
	out := map[string]any{"name": name}
	if got, err := run(); err != nil {
		var failure *pgconn.PgError
		out["error"], out["message"], out["sqlstate"] = "error", err.Error(), nil
		if errors.As(err, &failure) {
			out["sqlstate"] = failure.Code
		}
	} else {
		out["value"] = got
	}
	line, _ := json.Marshal(out)
	fmt.Println(string(line))
}

func main() {
	var given drivers
	decoder := json.NewDecoder(strings.NewReader(os.Getenv("CONFIDE_DRIVERS")))
	decoder.UseNumber()
	must(decoder.Decode(&given))
	connection, err := pgx.Connect(ctx, os.Args[1])
	must(err)
	defer connection.Close(ctx)
	if os.Args[2] == "create" {
		_, err := connection.Exec(ctx, given.Table)
		must(err)
		return
	}
	for _, row := range given.Rows {
		_, err := connection.Exec(ctx, given.Insert, values(row)...)
		must(err)
	}
	for _, one := range checks(given) {
		tell(one.name, func() (any, error) {
			tx, err := connection.Begin(ctx)
			if err != nil {
				return nil, err
			}
			defer func() { _ = tx.Rollback(ctx) }()
			return one.run(tx)
		})
	}
}

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
