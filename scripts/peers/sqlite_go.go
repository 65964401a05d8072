//go:build !cgo

package main

import _ "modernc.org/sqlite" // SQLite translated to Go

const sqliteDriver = "sqlite"
