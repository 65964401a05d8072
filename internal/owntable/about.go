package owntable

import "strings"

// rowsAfter says, by the first part of a partition key, how many parts come before the text of the row that the row of
// our table is about.
var rowsAfter = map[string]int{"ledger": 2, "set": 2, "mark": 2, "tomb": 1, "seen": 1, "follow": 3, "fact": 3}

// DescribePartition returns the meaning of a row of our table, by the first part of its partition key, and the text of the row that it is
// about (RowText); "" if it is about none.
func DescribePartition(partition string) (kind, row string) {
	parts := strings.Split(partition, "|")
	kind = parts[0]
	if n, is := rowsAfter[kind]; is && n < len(parts) {
		row = strings.Join(parts[n:], "|")
	}
	return kind, row
}
