package main

var wardrobe, watchlists, viewing, movienight model
