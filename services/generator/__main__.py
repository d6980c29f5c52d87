from services.generator.app import main

main()
