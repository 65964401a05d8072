//go:build cgo

package main

import _ "github.com/mattn/go-sqlite3" // SQLite itself, compiled from C

const sqliteDriver = "sqlite3"
