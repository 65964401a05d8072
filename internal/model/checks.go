package model

import "slices"

// checks returns the checks in the order in which they run. Each looks at the whole plan
// for one kind of mistake. The plan holds whatever could be compiled, so a check skips
// broken parts.
// The order decides only the order of messages at one line of the file: problems are sorted by
// line.
func checks() []func(*compiler) {
	all := slices.Concat(entityChecks, flowChecks)
	for _, k := range kinds {
		all = append(all, k.checks...)
	}
	return all
}

// entityChecks are the checks of tables, entities and their keys.
var entityChecks = []func(*compiler){
	checkTableNames,
	checkIndexCount,
	checkLocalIndexes,
	checkTTL,
	checkAttributes,
	checkExpires,
	checkRules,
	checkUniqueFields,
	checkNew,
	checkNested,
	checkSupersede,
	checkTemplateNames,
	checkTemplateTypes,
	checkSeparators,
	checkWhere,
	checkOneEntity,
	checkOneKey,
	checkOwnKeys,
}

// flowChecks are the checks of derivations and queries.
var flowChecks = []func(*compiler){
	checkKeyTypes,
	checkOldTables,
	checkMigrations,
	checkMigrationLoops,
	checkLoops,
	checkImages,
	checkSearches,
	checkGets,
	checkPartitions,
	checkBelow,
	checkFilters,
	checkAny,
	checkKinds,
	checkExpired,
	checkUnique,
	checkReturns,
	checkSort,
	checkReadsEach,
	checkUnwritten, // of what has no effect, or what no write can hold
	checkCounted,
	checkConstantKeys,
	checkWidths,
}
