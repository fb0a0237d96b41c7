// Conditions that the preprocessor cannot evaluate.
#if (1
#endif
#if "text"
#endif
#if 1 / 0
#endif
#if defined
#endif
#if 1 2
#endif
