package sqlite

// Connections returns how many connections the store has.
func (db *DB) Connections() int {
	return db.readers.Stats().OpenConnections + db.handle.Stats().OpenConnections
}
