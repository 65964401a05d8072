package model

import "slices"

// checks run over the whole plan, each looking for one kind of mistake. They see
// whatever could be compiled, so they pass over what is broken.
func checks() []func(*compiler) {
	all := slices.Clone(entityChecks)
	for _, k := range kinds {
		all = append(all, k.checks...)
	}
	return append(all, flowChecks...)
}

// entityChecks are those of tables, entities and their keys.
var entityChecks = []func(*compiler){
	checkTableNames,
	checkIndexCount,
	checkLocalIndexes,
	checkTTL,
	checkAttributeLimits,
	checkExpires,
	checkReadings,
	checkRules,
	checkUniqueFields,
	checkNew,
	checkNested,
	checkSupersede,
	checkComputed,
	checkForward,
	checkTemplateNames,
	checkTemplateTypes,
	checkSeparators,
	checkWhere,
	checkOneEntity,
	checkOneKey,
	checkOwnKeys,
}

// flowChecks are those of what becomes of rows, and of queries.
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
	checkSpread,
}
